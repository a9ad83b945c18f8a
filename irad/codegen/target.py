"""The machine that code is made for: this CPU with all its features, and how LLVM is tuned for it.

Objects are position independent and made for the host alone: :func:`host_key` names everything they depend on.
"""

from __future__ import annotations

import threading
from functools import lru_cache

import llvmlite
import llvmlite.binding as llvm

from irad.config import CONFIG

_lock = threading.Lock()
_ready = False


def initialise() -> None:
    """Make LLVM ready for the native target; as often as wanted."""
    global _ready
    with _lock:
        if not _ready:
            if llvm.llvm_version_info[0] < 20:
                llvm.initialize()
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            llvm.initialize_native_asmparser()
            _ready = True


@lru_cache(maxsize=1)
def host() -> tuple[str, str, str]:
    """Triple, CPU name and feature string of this machine.

    LLVM prefers vectors of 256 bits on most AVX-512 CPUs, and so do we: on a heat stencil with 16 to 128 points an axis
    512 bits were up to a third slower in cache (short rows, divisions) and 4 % faster in memory.
    """
    initialise()
    cpu = llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features()
    text = features.flatten()
    if CONFIG.vector_bits and features.get("avx512f"):
        text += ",-prefer-256-bit" if CONFIG.vector_bits == 512 else ",+prefer-256-bit"
    return llvm.get_process_triple(), cpu, text


def host_key() -> str:
    """What compiled code depends on besides its text: versions, CPU and features."""
    return "|".join((f"llvmlite {llvmlite.__version__}", str(llvm.llvm_version_info), *host()))


def machine(opt: int = 3) -> llvm.TargetMachine:
    """A target machine for the host that emits relocatable, position-independent objects."""
    triple, cpu, features = host()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu, features, opt, reloc="pic", codemodel="jitdefault"
    )


def optimise(module: llvm.ModuleRef, target: llvm.TargetMachine) -> None:
    """LLVM's O3 with loop vectorisation, for speed of the code that comes out.

    Superword vectorisation of straight code is off: it takes a quarter of the time and gains nothing on loop nests.
    """
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.loop_interleaving = True
    tuning.loop_unrolling = True
    tuning.slp_vectorization = False
    passes = llvm.create_pass_builder(target, tuning)
    passes.getModulePassManager().run(module, passes)
