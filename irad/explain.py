"""What a kernel and its adjoint do, in words and in code: what ``kernel.explain`` and ``kernel.inspect_*`` show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irad.errors import IradError
from irad.launch.bound import Bound
from irad.launching import Operands, prepare, sample
from irad.loops import LoopRun, copied
from irad.passes.layout import Program
from irad.pullback import usual_request
from irad.specialise import Request, Specialisation
from irad.wrt import resolve

if TYPE_CHECKING:
    from irad.kernel import Kernel

MODES = ("primal", "tangent", "adjoint")


def report(kernel: Kernel, args: Sequence[Any], wrt: Any, timed: bool = False) -> str:
    """How the kernel and its adjoint with respect to ``wrt`` run on these arguments; ``timed``: and how fast."""
    spec = kernel.specialise(args)
    values = kernel.values(spec, args)
    wanted = resolve(spec, values, wrt)
    asked = frozenset(p for w in wanted for p in w.parameters)
    reached = spec.reached(asked)
    primal = sample(spec, Request(), values)
    request = usual_request(spec, asked)
    adjoint = sample(spec, request, values)
    signature = ", ".join(f"{p.name}: {p.type}{' (captured)' if p.capture else ''}" for p in spec.parameters)
    lines = [
        f"{spec.lowered.name}({signature})",
        f"  {spec.lowered.loc}, {len(spec.stages)} statement{'s' if len(spec.stages) > 1 else ''}"
        if spec.lowered.kind == "math"
        else f"  {spec.lowered.loc}, a {spec.lowered.kind} kernel",
        f"  writes {', '.join(spec.written)}; reads {', '.join(p.name for p in spec.parameters if p.read)}",
        "kernel",
        *_sweeps(primal),
        f"adjoint with respect to {', '.join(w.name for w in wanted)}",
        f"  cotangents flow from {', '.join(sorted(reached)) or 'nothing: the result does not depend on these'}",
        *_sweeps(adjoint),
        f"  a pullback copies: {_listing(sorted(adjoint.reads), 'nothing, the adjoint reads no primal array')}",
        "  saved before the kernel overwrites it: "
        + _listing([f"{array} before statement {stage + 1}" for stage, array, _ in adjoint.saves], "nothing"),
        "  everything else is recomputed; no atomics, so the same bits for any number of threads",
    ]
    if spec.is_loop:
        lines[-2] = "  local arrays, and shadows of theirs, are kept until the adjoint is dropped"
        if timed:
            lines += _loop_timings(spec, values, request)
        return "\n".join(lines)
    if timed:
        lines += _timings(kernel, spec, values, request)
    return "\n".join(lines)


def _timings(kernel: Kernel, spec: Specialisation, values: Mapping[str, Any], request: Request) -> Iterator[str]:
    """Effective memory throughput: bytes of every array that must be read or written, once, over the time."""
    own = {**values, **{n: values[n].copy() for n in spec.written}}
    kernel.check(spec, own)
    primal = prepare(spec, Request(), Operands(own)).bind()
    read = sum(values[p.name].nbytes for p in spec.parameters if p.is_array and p.read)
    written = sum(values[n].nbytes for n in spec.written)
    yield f"timed: kernel {_throughput(primal, read + written)}"
    active, keep, assign = request.active, request.keep_seed, request.assign
    shadows = {n: np.ones_like(values[n]) for n in active if spec.by_name[n].is_array}
    cells = {n: np.zeros(1) for n in active if not spec.by_name[n].is_array}
    program = sample(spec, request, values)
    saved = {alias: values[array].copy() for _, array, alias in program.saves}
    adjoint = kernel.prepare_vjp(spec, Operands(own, shadows, cells, saved=saved), keep, assign).bind()
    moved = sum(values[n].nbytes for n in program.reads) + sum(a.nbytes for a in saved.values())
    moved += sum(a.nbytes * (1 if n in keep or n in assign else 2) for n, a in shadows.items())
    yield f"timed: adjoint {_throughput(adjoint, moved)}"


def _loop_timings(spec: Specialisation, values: Mapping[str, Any], request: Request) -> Iterator[str]:
    """Times of a loop kernel, of the run that records and of the walk back, and the bytes recorded; on copies."""

    def fresh() -> dict[str, Any]:
        return {**values, **{n: copied(values[n]) for n in spec.written}}

    def timed(make: Callable[[], Callable[[], None]]) -> float:
        times: list[float] = []
        until = time.perf_counter() + 0.2
        while len(times) < 3 or (len(times) < 50 and time.perf_counter() < until):
            call = make()
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return float(np.median(times)) * 1e6

    yield f"timed: kernel {timed(lambda: prepare(spec, Request(), Operands(fresh())).bind()):.1f} us"
    yield f"timed: recording {timed(lambda: LoopRun(spec, fresh(), request.active).forward):.1f} us"
    run = LoopRun(spec, fresh(), request.active)
    run.forward()
    yield f"timed: adjoint {timed(lambda: run.backward):.1f} us; {run.record.nbytes / 2**20:.3g} MiB recorded"


def _throughput(launch: Bound, moved: int) -> str:
    times: list[float] = []
    launch()
    until = time.perf_counter() + 0.2
    while len(times) < 5 or time.perf_counter() < until:
        start = time.perf_counter()
        launch()
        times.append(time.perf_counter() - start)
    middle = float(np.median(times))
    return f"{middle * 1e6:.1f} us, T_eff {moved / middle / 1e9:.1f} GB/s ({moved / 2**20:.3g} MiB must move)"


def _sweeps(program: Program) -> Iterator[str]:
    for number, title in enumerate(program.strategy, 1):
        yield f"  {number}. {title}"
    if not program.flops_per_point and not program.bytes_per_point:
        return
    yield f"  {program.bytes_per_point} bytes a point if every array is moved once, {program.flops_per_point} flops"


def _listing(names: Sequence[str], otherwise: str) -> str:
    return ", ".join(names) or otherwise


def _signature(spec: Specialisation) -> str:
    return f"({', '.join(map(str, spec.types))})"


def llvm_texts(kernel: Kernel, stage: str) -> dict[str, str]:
    """LLVM text by signature; see ``Kernel.inspect_llvm``."""
    if stage == "frontend":
        return {
            _signature(spec): "\n".join(part for s in spec.lowered.stages for part in (s.domain_text, s.text))
            for spec in kernel.specialisations()
        }
    mode, _, optimised = stage.partition(" ")
    _check_mode(mode, stage, "frontend, " if not optimised else "")
    if optimised not in ("", "optimised"):
        _check_mode(stage, stage, "frontend, ")
    return {
        title: executable.code.llvm if optimised else spec.program(request, variant).text
        for title, spec, request, variant, executable in _compiled(kernel, mode)
    }


def asm_texts(kernel: Kernel, stage: str) -> dict[str, str]:
    """Assembly text by signature; see ``Kernel.inspect_asm``."""
    _check_mode(stage, stage, "")
    return {title: executable.code.asm() for title, _, _, _, executable in _compiled(kernel, stage)}


def _compiled(kernel: Kernel, mode: str) -> Iterator[tuple[str, Specialisation, Any, Any, Any]]:
    """Everything compiled of one mode, each with a title of its own."""
    seen: dict[str, int] = {}
    for spec in kernel.specialisations():
        for (request, variant), executable in spec.executables().items():
            if request.mode != mode:
                continue
            title = _signature(spec)
            if request.active:
                title += f" by {', '.join(sorted(request.active))}"
            if variant.unit:
                title += f", unit strides {', '.join(f'{n}[{d}]' for n, d in sorted(variant.unit))}"
            seen[title] = seen.get(title, 0) + 1
            yield (title if seen[title] == 1 else f"{title} #{seen[title]}"), spec, request, variant, executable


def _check_mode(mode: str, asked: str, more: str) -> None:
    if mode not in MODES:
        raise IradError(f"there is no stage {asked!r} to inspect", remedy=f"one of {more}{', '.join(MODES)}")
