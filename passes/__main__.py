"""``python -m irad.passes PIPELINE FILE.ll``: run passes on LLVM text and print what comes out.

PIPELINE is a name (``prepare``, ``point``, ``adjoint``, ``tangent``) or passes separated by commas; FILE ``-`` is
standard input. Errors of irad go to standard error, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from irad.errors import IradError

from .base import PASSES, Options, Value
from .ir.read import parsed
from .pipeline import PIPELINES, passes_of, run, text_of


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    a = _parser().parse_args(arguments)
    if a.list:
        _list()
        return 0
    try:
        text = sys.stdin.read() if a.file == "-" else Path(a.file).read_text()
        options = Options(a.function or _only_function(text), _names(a.weak), _names(a.active))

        def watch(name: str, value: Value) -> None:
            print(f"; ---- after {name}\n{text_of(value, locs=a.locs)}", file=sys.stderr)

        value, steps = run(passes_of(a.pipeline), text, options, check=a.verify, watch=watch if a.dump else None)
    except (IradError, OSError) as e:
        print(e, file=sys.stderr)
        return 1
    print(text_of(value, locs=a.locs), end="")
    if a.time:
        for s in steps:
            print(f"{s.name:14}{1e3 * s.seconds:9.2f} ms{s.size:7}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m irad.passes", description=(__doc__ or "").split("\n\n")[0])
    p.add_argument("pipeline", nargs="?", default="prepare", help="a pipeline, or passes separated by commas")
    p.add_argument("file", nargs="?", default="-", help="LLVM text; - for standard input")
    p.add_argument("--function", help="its name (default: the only one that is not internal)")
    p.add_argument("--weak", default="", metavar="A,B", help="float parameters that are Python numbers")
    p.add_argument("--active", default="", metavar="A,B", help="parameters that carry derivatives")
    p.add_argument("--verify", action="store_true", help="check the code after every pass")
    p.add_argument("--dump", action="store_true", help="print the code after every pass to standard error")
    p.add_argument("--time", action="store_true", help="print time and size of every pass to standard error")
    p.add_argument("--locs", action="store_true", help="print the lines of the user's source")
    p.add_argument("--list", action="store_true", help="list the passes and pipelines")
    return p


def _names(text: str) -> frozenset[str]:
    return frozenset(n for n in text.split(",") if n)


def _only_function(text: str) -> str:
    names = [f.name for f in parsed(text).functions if not f.is_declaration and f.linkage.name == "external"]
    if len(names) != 1:
        raise IradError(f"the file defines {names or 'no functions'}", remedy="name one with --function")
    return str(names[0])


def _list() -> None:
    for p in PASSES.values():
        print(f"{p.name:14}{p.takes:>9} -> {p.gives:9} {p.does}")
    for name, names in PIPELINES.items():
        print(f"{name:14} = {', '.join(names)}")


if __name__ == "__main__":
    sys.exit(main())
