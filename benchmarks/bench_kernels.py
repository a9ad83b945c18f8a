"""The heat kernel and its adjoint against a plain copy and against Numba, in one run.

    python benchmarks/bench_kernels.py [--sizes 64 128 256] [--threads N] [--dtype float64] [--seconds 2]

All launches of one size are timed in turns, so that whatever slows the machine down slows them all; medians are
compared. T_eff counts each array that must move once: kernel 3, adjoint 3 (seed, Ci, T'), all cotangents 5, copy 2.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np
from workloads import Heat, heat3d, heat3d_close, numba_copy, numba_heat3d

import irad
from irad.launch.threads import num_threads


def measure(launches: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Median time of each launch in microseconds, from interleaved rounds."""
    for launch in launches.values():
        launch()
    times: dict[str, list[float]] = {name: [] for name in launches}
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(times[next(iter(times))]) < 5:
        for name, launch in launches.items():
            start = time.perf_counter()
            launch()
            times[name].append(time.perf_counter() - start)
    return {name: 1e6 * float(np.median(t)) for name, t in times.items()}


def launches(h: Heat) -> dict[str, tuple[Callable[[], object], int]]:
    """What is compared, with the number of arrays that must move."""
    copied = np.empty_like(h.T)
    adjoint = {"keep_seed": ("dT",), "assign": ("T",)}
    everything = {"keep_seed": ("dT",), "assign": ("T", "Ci")}
    shadows = {"dT": h.seed, "T": h.T_bar}
    back = irad.pullback(heat3d, *h.args, wrt="T")
    out = {"T": h.T_bar}
    return {
        "kernel": (heat3d.bind(*h.args), 3),
        "kernel, math-close": (heat3d_close.bind(*h.args), 3),
        "adjoint by T": (heat3d.bind_vjp(h.args, shadows, **adjoint), 3),
        "adjoint by T, Ci, lam": (
            heat3d.bind_vjp(h.args, {**shadows, "Ci": h.Ci_bar, "lam": h.lam_bar}, **everything),
            5,
        ),
        "kernel called": (lambda: heat3d(*h.args), 3),
        "back(dT=seed, out=T)": (lambda: back(dT=h.seed, out=out), 3),
        "Numba": (lambda: numba_heat3d(*h.args), 3),
        "Numba copy": (lambda: numba_copy(copied, h.T), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--threads", type=int, default=numba.config.NUMBA_NUM_THREADS)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each size")
    options = parser.parse_args()
    numba.set_num_threads(options.threads)
    numba_copy(np.zeros((2, 2, 2)), np.zeros((2, 2, 2)))  # starts Numba's threads, whose number irad then follows
    print(f"{num_threads()} threads, {options.dtype}; medians of interleaved rounds")
    for n in options.sizes:
        heat = Heat(n, np.dtype(options.dtype).type)
        compared = launches(heat)
        times = measure({name: launch for name, (launch, _) in compared.items()}, options.seconds)
        print(f"\n{n}^3{'':20}{'us':>10}{'x kernel':>10}{'T_eff GB/s':>12}")
        for name, us in times.items():
            moved = compared[name][1] * heat.nbytes
            print(f"{name:24}{us:10.1f}{us / times['kernel']:10.2f}{moved / us / 1e3:12.1f}")


if __name__ == "__main__":
    main()
