"""The ten inertial parameters of a body in three representations, and their margins to physical consistency.

Order (Pinocchio): ``[m, m·cx, m·cy, m·cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz]`` in kg, kg·m, kg·m², the inertia
about the *origin* of the body's joint frame, not about the centre of mass. The pseudo-inertia (docs/theory.md §6)
``P = [[½tr(I)·1 − I, m c], [(m c)ᵀ, m]]`` is linear in them, and positive definite exactly for physically consistent
bodies: positive mass, positive definite inertia about the centre of mass, triangle inequality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import check_shape
from ..linalg import Array, shaped

#: Least ratio of the smallest to the largest principal second moment of a body that every engine accepts.
MARGIN = 1e-6
#: Names of the ten parameters in Pinocchio's order.
BODY_PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
#: Their units.
BODY_UNITS = ("kg", "kg·m", "kg·m", "kg·m", *("kg·m²",) * 6)

_COL, _ROW = np.tril_indices(3)


def skew(vector: ArrayLike) -> Array:
    """Cross-product matrix, shape (..., 3, 3), with ``skew(a) @ b == cross(a, b)``; vector of shape (..., 3)."""
    v = np.asarray(vector, dtype=float)
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    return out - np.swapaxes(out, -1, -2)


def symmetric(six: ArrayLike) -> Array:
    """Symmetric matrix from ``[xx, xy, yy, xz, yz, zz]``, shape (..., 3, 3), same units; six of shape (..., 6)."""
    s = np.asarray(six, dtype=float)
    out = np.empty((*s.shape[:-1], 3, 3))
    out[..., _ROW, _COL] = s
    out[..., _COL, _ROW] = s
    return out


def to_com(theta: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass, centre of mass and inertia about the centre of mass.

    Args:
        theta: Ten parameters, shape (..., 10) [kg, kg·m, kg·m²].

    Returns:
        ``(m, c, I_c)`` of shapes (...), (..., 3) [m], (..., 3, 3) [kg·m²]. With m = 0, c is 0 and I_c is
        the inertia about the origin.
    """
    t = np.asarray(theta, dtype=float)
    m, h = t[..., 0], t[..., 1:4]
    c = np.where(m[..., None] == 0, 0.0, h / np.where(m == 0, 1.0, m)[..., None])
    s = skew(c)
    return m, c, symmetric(t[..., 4:]) + m[..., None, None] * (s @ s)


def from_com(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Returns the ten parameters from the values of a URDF, shape (..., 10), about the frame's origin.

    Args:
        mass: Shape (...) [kg].
        com: Centre of mass in the body frame, shape (..., 3) [m].
        inertia: About the centre of mass, along the body frame's axes, shape (..., 3, 3) [kg·m²].
    """
    m, c = np.asarray(mass, dtype=float), np.asarray(com, dtype=float)
    s = skew(c)
    about_origin = np.asarray(inertia, dtype=float) - m[..., None, None] * (s @ s)
    return np.concatenate([m[..., None], m[..., None] * c, about_origin[..., _ROW, _COL]], axis=-1)


def pseudo_inertia(theta: ArrayLike) -> Array:
    """Pseudo-inertia matrix, linear in the ten parameters (docs/theory.md §6), shape (..., 4, 4).

    Args:
        theta: Shape (..., 10) [kg, kg·m, kg·m²].
    """
    t = np.asarray(theta, dtype=float)
    inertia = symmetric(t[..., 4:])
    trace = np.trace(inertia, axis1=-2, axis2=-1)
    out = np.empty((*t.shape[:-1], 4, 4))
    out[..., :3, :3] = 0.5 * trace[..., None, None] * np.eye(3) - inertia
    out[..., :3, 3] = out[..., 3, :3] = t[..., 1:4]
    out[..., 3, 3] = t[..., 0]
    return out


def from_pseudo_inertia(pseudo: ArrayLike) -> Array:
    """Inverse of :func:`pseudo_inertia`.

    Args:
        pseudo: Shape (..., 4, 4), symmetric.

    Returns:
        Ten parameters, shape (..., 10).
    """
    p = np.asarray(pseudo, dtype=float)
    sigma = p[..., :3, :3]
    inertia = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma
    return np.concatenate([p[..., 3, 3][..., None], p[..., :3, 3], inertia[..., _ROW, _COL]], axis=-1)


#: The ten basis matrices of :func:`pseudo_inertia`: ``P = Σ theta_k PSEUDO_BASIS[k]``, shape (10, 4, 4).
PSEUDO_BASIS = pseudo_inertia(np.eye(10))


def transform(theta: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Expresses a body in another frame: ``P_a = A P_b Aᵀ`` (docs/theory.md §1).

    Args:
        theta: In frame b, shape (..., 10).
        rotation: Orientation of frame b in a, shape (3, 3).
        translation: Origin of b in a, shape (3,) [m].

    Returns:
        In frame a, shape (..., 10).
    """
    placement = np.eye(4)
    placement[:3, :3], placement[:3, 3] = rotation, translation
    return from_pseudo_inertia(placement @ pseudo_inertia(theta) @ placement.T)


def transform_matrix(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Returns the matrix of :func:`transform`, shape (10, 10): ``theta_a = X theta_b``.

    Args:
        rotation: Orientation of frame b in a, shape (3, 3).
        translation: Origin of b in a, shape (3,) [m].
    """
    return transform(np.eye(10), rotation, translation).T


@dataclass(frozen=True)
class Margins:
    """Margins of a body to physical consistency; all are ≥ 0 for a consistent one.

    Attributes:
        mass: [kg].
        min_eigenvalue: Smallest eigenvalue of the inertia about the centre of mass [kg·m²].
        triangle: ``tr(I_c)/2 − λ_max(I_c)``: slack of the triangle inequality [kg·m²].
        relative: Smallest principal second moment over the largest, about the centre of mass; negative when
            the triangle inequality fails, −inf when the mass is not positive.
        cholesky_tolerance: ``max(0, −min_eigenvalue)`` (Gautier 2013, eq. 36 and Table III) [kg·m²].
    """

    mass: float
    min_eigenvalue: float
    triangle: float
    relative: float
    cholesky_tolerance: float

    @property
    def consistent(self) -> bool:
        """True if the pseudo-inertia is positive definite."""
        return self.mass > 0 and self.relative > 0

    def passes(self, tolerance: float) -> bool:
        """Whether the mass is positive and the CoM inertia positive definite up to a tolerance (Gautier 2013, eq. 36).

        Args:
            tolerance: ε [kg·m²]; its sign does not matter (Gautier 2013 writes it negative).
        """
        return self.mass > 0 and self.min_eigenvalue + abs(tolerance) > 0


def margins(theta: ArrayLike) -> Margins:
    """Measures the physical consistency of one body (docs/theory.md §6).

    Args:
        theta: Ten parameters, shape (10,).

    Raises:
        ShapeError: ``theta`` is not one body.
    """
    m, _, inertia = to_com(shaped("theta", theta, (10,)))
    eigenvalues = np.linalg.eigvalsh(inertia)
    moments = 0.5 * eigenvalues.sum() - eigenvalues  # principal second moments; descending as eigenvalues ascend
    scale = np.abs(moments).max()
    relative = float(moments.min() / scale) if scale > 0 else 0.0
    return Margins(
        mass=float(m),
        min_eigenvalue=float(eigenvalues[0]),
        triangle=float(moments[-1]),
        relative=relative if m > 0 else -np.inf,
        cholesky_tolerance=float(max(0.0, -eigenvalues[0])),
    )


def second_moments(inertia: Array) -> tuple[Array, Array]:
    """Principal second moments of a body: the eigenvalues of ``½tr(I_c)·1 − I_c``.

    Args:
        inertia: Inertia about the centre of mass, shape (3, 3) [kg·m²].

    Returns:
        The moments in ascending order, shape (3,) [kg·m²], and their axes as columns, shape (3, 3).
    """
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    return moments, axes


def from_second_moments(mass: ArrayLike, com: ArrayLike, moments: Array, axes: Array) -> Array:
    """Returns the ten parameters of a body with given principal second moments, shape (10,).

    Args:
        mass: Shape () [kg].
        com: Centre of mass, shape (3,) [m].
        moments, axes: As returned by :func:`second_moments`, shapes (3,) and (3, 3).
    """
    second = (axes * moments) @ axes.T
    return from_com(mass, com, np.trace(second) * np.eye(3) - second)


def nearest_physical(theta: ArrayLike, floor: float = 1e-3, *, least_mass: float = 1e-3, least_gyration: float = 1e-3) -> Array:
    """Returns the closest physically consistent body: same mass and centre of mass, clipped principal second moments.

    At a given mass and centre of mass, clipping the eigenvalues of the central second-moment matrix
    ``½tr(I_c)·1 − I_c`` is the smallest change in the Frobenius norm. A mass that is not positive is raised to
    ``least_mass`` and put at the origin, because ``m·c`` without a mass does not determine a position.

    Args:
        theta: Ten parameters, shape (10,) [kg, kg·m, kg·m²].
        floor: Least ratio of the smallest to the largest principal second moment, 0 < floor ≤ 1.
        least_mass: Used where the mass is not positive [kg].
        least_gyration: The largest principal second moment is at least mass × least_gyration² [m]: gives a point
            mass a size.

    Returns:
        Shape (10,); exactly ``theta`` if it is consistent already.

    Raises:
        ShapeError: ``theta`` is not one body.
    """
    t = np.array(theta, dtype=float)
    check_shape("theta", t.shape, (10,))
    m, c, inertia = to_com(t)
    if m <= 0:
        m, c, inertia = np.asarray(least_mass), np.zeros(3), symmetric(t[4:])
    moments, axes = second_moments(inertia)
    least = floor * max(moments[-1], float(m) * least_gyration**2)
    if t[0] > 0 and moments[0] >= least:
        return t
    # A point mass has no principal axes: it becomes a ball with the least radius of gyration.
    return from_second_moments(m, c, np.maximum(moments, least if moments[-1] > least else least / floor), axes)
