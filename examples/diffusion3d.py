"""Heat in a block with two anomalies: a loss of the final temperature and its gradients, three ways.

The temperature T obeys dT/dt = lam * Ci * laplace(T) inside a cube and is fixed on its surface. The loss is the sum
of T at the end; wanted are its derivatives with respect to the conductivity lam, the field Ci and the initial
temperature.

    python examples/diffusion3d.py [--points 16] [--picture FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import irad
from irad.fd import d2_xi, d2_yi, d2_zi, inn

LENGTH = 10.0  # of each side
LAM = 1.0  # conductivity
STEPS = 100  # of an explicit method: the time span is STEPS * dx**2 / 8.1
TOLERANCE = 1e-6
PICTURE = str(Path(__file__).resolve().parent.parent / "docs" / "diffusion3d.png")


@irad.kernel
def diffusion3d_step(dT, T, Ci, lam, dx):
    dT[inn] = lam[0] * inn(Ci) * (d2_xi(T) / dx**2 + d2_yi(T) / dx**2 + d2_zi(T) / dx**2)


def anomalies(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Ci at these places: 1, and less in two balls."""
    low, high = LENGTH / 3, LENGTH / 1.5
    near_y_z = -((y - LENGTH / 2) ** 2) - (z - high) ** 2
    return 1 / (1 + 5 * np.exp(-((x - high) ** 2) + near_y_z) + 5 * np.exp(-((x - low) ** 2) + near_y_z))


def setup(points: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Ci, the initial temperature, and the spacing."""
    x, y, z = np.meshgrid(*[np.linspace(0.0, LENGTH, points)] * 3, indexing="ij")
    middle = ((x - LENGTH / 2) / 2) ** 2 + ((y - LENGTH / 2) / 2) ** 2
    T0 = 100 * np.exp(-middle - ((z - LENGTH / 3) / 2) ** 2) + 50 * np.exp(-middle - ((z - LENGTH / 1.5) / 2) ** 2)
    return anomalies(x, y, z), T0, LENGTH / (points - 1)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What ``work`` returns, and the seconds it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--points", type=int, default=16, help="along each side (default 16)")
    arguments.add_argument("--picture", default=PICTURE, help="where the picture goes ('' for none)")
    options = arguments.parse_args()
    Ci, T0, dx = setup(options.points)

    def rhs(du, u, p, t):
        diffusion3d_step(du, u, Ci, p, dx)

    problem = irad.ODEProblem(rhs, T0, (0.0, STEPS * dx**2 / 8.1), np.array([LAM]))

    def solve(progress: bool = True) -> irad.Solution:
        return irad.solve(problem, irad.ROCK2(), rtol=TOLERANCE, atol=TOLERANCE, progress=progress)

    solve(progress=False)  # compiles
    sol, seconds = timed(solve)
    ones = np.ones_like(T0)
    T1 = sol.u[-1]
    print(f"{options.points}^3 points, t from 0 to {sol.t[-1]:.4f}, tolerances {TOLERANCE:g}")
    print(f"solve: {sol.stats.naccept} steps, {sol.stats.nf} evaluations, {seconds * 1e3:.1f} ms")
    print(f"loss sum(T(t1)) = {irad.sum(T1):.9f}\n")

    results = {}
    for method in (irad.DiscreteAdjoint(), irad.InterpolatingAdjoint()):
        irad.adjoint(sol, ones, sensealg=method, wrt=("u0", "p", "Ci"))  # compiles
        title = type(method).__name__
        results[title] = timed(lambda: irad.adjoint(sol, ones, sensealg=method, wrt=("u0", "p", "Ci")))  # noqa: B023
    (g, _) = results["DiscreteAdjoint"]

    def forward() -> list[float]:
        """Directional derivatives: along lam, and along the unit vectors of the adjoint's gradients."""
        directions = {"p": np.array([1.0]), "Ci": g.Ci / np.linalg.norm(g.Ci), "u0": g.u0 / np.linalg.norm(g.u0)}
        return [irad.sum(irad.jvp(sol, tangents={name: d})[-1]) for name, d in directions.items()]

    forward()  # compiles
    along, took = timed(forward)

    print(f"{'':24}{'dL/dlam':>18}{'|dL/dCi|':>18}{'|dL/dT0|':>18}{'ms':>9}")
    for title, (found, spent) in results.items():
        norms = np.linalg.norm(found.Ci), np.linalg.norm(found.u0)
        print(f"{title:24}{found.p[0]:18.9f}{norms[0]:18.9f}{norms[1]:18.9f}{spent * 1e3:9.1f}")
    print(f"{'forward mode':24}{along[0]:18.9f}{along[1]:18.9f}{along[2]:18.9f}{took * 1e3:9.1f}")
    print("(forward mode: three runs, one a direction; the norms are derivatives along the adjoint's gradients)")
    if options.picture:
        draw(options.picture, T1, g.Ci)


def draw(path: str, T: np.ndarray, gradient: np.ndarray) -> None:
    """The final temperature and the gradient with respect to Ci, in the plane through the middle."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    middle = T.shape[1] // 2
    x = np.linspace(0.0, LENGTH, 201)
    ball = anomalies(x[:, None], np.float64(LENGTH / 2), x[None, :])
    panels = (
        (T[:, middle], "inferno", "white", "temperature $T(t_1)$"),
        (gradient[:, middle], "YlGnBu_r", "black", r"$\partial L / \partial C_i$  of  $L = \sum T(t_1)$"),
    )
    fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for ax, (field, colours, line, title) in zip(axes, panels, strict=True):
        image = ax.imshow(field.T, cmap=colours, origin="lower", extent=(0, LENGTH, 0, LENGTH), interpolation="bicubic")
        ax.contour(x, x, ball.T, [0.5], colors=line, linewidths=1, linestyles="dashed")
        ax.set_title(title)
        ax.set_xlabel("x")
        ax.set_ylabel("z")
        fig.colorbar(image, ax=ax, shrink=0.9)
    fig.suptitle("Heat in a block with two insulating balls (dashed)", fontsize=11)
    fig.savefig(path, dpi=130)
    plt.close(fig)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
