"""The inputs of the benchmarks: kernels and their arrays, made the same way everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

import irad
from irad.fd import d2_xi, d2_yi, d2_zi, inn


@irad.kernel
def heat3d(dT, T, Ci, lam, dx, dy, dz):
    i, j, k = irad.interior(dT)
    dT[i, j, k] = lam[0] * Ci[i, j, k] * (
        (T[i + 1, j, k] - 2 * T[i, j, k] + T[i - 1, j, k]) / dx**2
        + (T[i, j + 1, k] - 2 * T[i, j, k] + T[i, j - 1, k]) / dy**2
        + (T[i, j, k + 1] - 2 * T[i, j, k] + T[i, j, k - 1]) / dz**2
    )  # fmt: skip


@irad.kernel
def heat3d_close(dT, T, Ci, lam, dx, dy, dz):
    dT[inn] = lam[0] * inn(Ci) * (d2_xi(T) / dx**2 + d2_yi(T) / dy**2 + d2_zi(T) / dz**2)


@numba.njit(parallel=True)
def numba_copy(b, a):
    for i in numba.prange(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                b[i, j, k] = a[i, j, k]


@numba.njit(parallel=True, error_model="numpy")
def numba_heat3d(dT, T, Ci, lam, dx, dy, dz):
    for i in numba.prange(1, T.shape[0] - 1):
        for j in range(1, T.shape[1] - 1):
            for k in range(1, T.shape[2] - 1):
                dT[i, j, k] = lam[0] * Ci[i, j, k] * (
                    (T[i + 1, j, k] - 2 * T[i, j, k] + T[i - 1, j, k]) / dx**2
                    + (T[i, j + 1, k] - 2 * T[i, j, k] + T[i, j - 1, k]) / dy**2
                    + (T[i, j, k + 1] - 2 * T[i, j, k] + T[i, j, k - 1]) / dz**2
                )  # fmt: skip


@dataclass
class Heat:
    """The heat kernel on ``n**3`` points: arguments, a seed, and arrays for cotangents."""

    n: int
    dtype: type = np.float64

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.n)
        shape = (self.n,) * 3
        self.dT = np.zeros(shape, self.dtype)
        self.T, self.Ci, self.seed = (rng.random(shape).astype(self.dtype) for _ in range(3))
        self.lam = np.array([1.5], self.dtype)
        self.T_bar, self.Ci_bar, self.lam_bar = np.zeros_like(self.T), np.zeros_like(self.T), np.zeros_like(self.lam)

    @property
    def args(self) -> tuple[object, ...]:
        return (self.dT, self.T, self.Ci, self.lam, 0.1, 0.2, 0.3)

    @property
    def nbytes(self) -> int:
        """Bytes of one array."""
        return self.T.nbytes
