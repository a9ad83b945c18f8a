"""LLVM's own optimiser before differentiating: everything inlined, local variables made values, constant loops
unrolled, code cleaned up; nothing vectorised or interleaved, and nothing executed that the user's branches do not.

:func:`inline` and :func:`optimise` are the two halves; guards of memory (``passes/guard.py``) go between them.
Lines of the user's source are kept. The result does not depend on the machine's CPU, only on its architecture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import llvmlite.binding as llvm

from .ir.read import parsed

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

_GROUP = re.compile(r"^(attributes #\d+ = \{)(.*)(\})$", re.M)
_AGAINST = frozenset({"noinline", "optnone", "optsize", "minsize", "cold", "optforfuzzing"})


def canonicalise(text: str, keep: Iterable[str]) -> str:
    """An LLVM module with everything inlined into the functions ``keep``, at O2 without vectorising."""
    return optimise(inline(text, keep))


def inline(text: str, keep: Iterable[str], *, branches: bool = False) -> str:
    """Inline all functions of a module into those named ``keep``, and turn their local variables into values.

    ``branches``: leave every branch a branch here and in :func:`optimise`. LLVM likes to turn ``if c: y = x * x`` into
    a product and a select; where the product overflows, a zero cotangent times infinity would then make NaNs on the
    side that was not taken.
    """
    kept = frozenset(keep)
    module = parsed(_GROUP.sub(_without_refusals, text))
    for fn in module.functions:
        if fn.is_declaration:
            continue
        if fn.name not in kept:
            fn.linkage = "internal"
            fn.add_function_attribute("alwaysinline")
        if branches:
            fn.add_function_attribute("optforfuzzing")  # what LLVM calls "keep my branches"
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_sroa_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, _builder(module))
    return str(module)


def inline_keeping_branches(text: str, name: str) -> str:
    """:func:`inline` as it is done before differentiating: into one function, every branch a branch."""
    return inline(text, {name}, branches=True)


def optimise(text: str) -> str:
    """LLVM's O2 without vectorising and interleaving. Loops of known length are unrolled."""
    module = parsed(text)
    builder = _builder(module)
    builder.getModulePassManager().run(module, builder)
    return str(module)


def _without_refusals(group: re.Match[str]) -> str:
    """An attribute group without what would keep a function from being inlined or optimised."""
    words = [w for w in group[2].split() if w not in _AGAINST]
    return f"{group[1]} {' '.join(words) or 'nounwind'} {group[3]}"


def _builder(module: llvm.ModuleRef) -> llvm.PassBuilder:
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = False
    triple = module.triple or llvm.get_process_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2)
    return llvm.create_pass_builder(machine, options)
