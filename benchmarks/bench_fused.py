"""A stage of an integrator: the kernel with the recurrence joined to it, against one after the other, in one run.

    python benchmarks/bench_fused.py [--sizes 16 64 128] [--threads N] [--dtype float64] [--seconds 2]

``kernel``: the rate alone. ``stage``: rate and recurrence ``out = g + kappa (g - out) + c f(g)`` in one launch;
``apart``: in two.
``adjoint stage``: ``b G + a seed + c J^T seed`` in one launch; ``apart``: VJP and two passes over vectors.
"""

from __future__ import annotations

import argparse

import numba
import numpy as np
from bench_kernels import measure
from workloads import Heat, heat3d, numba_copy

from irad.launch.threads import num_threads
from irad.ode import vectors as vec
from irad.staged import bind_stage, bind_stage_vjp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 128])
    parser.add_argument("--threads", type=int, default=numba.config.NUMBA_NUM_THREADS)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each size")
    options = parser.parse_args()
    numba.set_num_threads(options.threads)
    numba_copy(np.zeros((2, 2, 2)), np.zeros((2, 2, 2)))  # starts Numba's threads, whose number irad then follows
    print(f"{num_threads()} threads, {options.dtype}; medians of interleaved rounds")
    for n in options.sizes:
        h = Heat(n, np.dtype(options.dtype).type)
        out, bar, G = (np.random.default_rng(k).random(h.T.shape).astype(h.T.dtype) for k in range(3))
        kernel = heat3d.bind(*h.args)
        stage = bind_stage(heat3d, h.args, "dT", "T", "recur in place", {".out": out})
        pull = bind_stage_vjp(heat3d, h.args, "dT", "T", h.seed, {"T": G})
        assert stage is not None
        assert pull is not None
        for bound, names in ((stage, (".kappa", ".c")), (pull, (".a", ".b", ".c"))):
            for name in names:
                bound.set(name, 0.5)
        vjp = heat3d.bind_vjp(h.args, {"dT": h.seed, "T": bar}, keep_seed=("dT",), assign=("T",))
        flat = [x.reshape(-1) for x in (out, h.T, h.args[0], G, h.seed, bar)]

        def apart(kernel=kernel, flat=flat):
            kernel()
            vec.recur(flat[0], flat[1], flat[0], 0.5, 0.5, flat[2])

        def adjoint_apart(vjp=vjp, flat=flat):
            vjp()
            vec.combine(flat[3], 0.5, flat[3], 0.5, flat[4])
            vec.add(flat[3], flat[5])

        times = measure(
            {"kernel": kernel, "stage": stage, "apart": apart, "adjoint stage": pull, "adjoint apart": adjoint_apart},
            options.seconds,
        )
        print(f"\n{n}^3{'':20}{'us':>10}{'x kernel':>10}")
        for name, us in times.items():
            print(f"{name:24}{us:10.1f}{us / times['kernel']:10.2f}")


if __name__ == "__main__":
    main()
