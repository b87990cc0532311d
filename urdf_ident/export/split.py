"""Takes identified bodies apart into the links of the URDF.

The data see bodies: all links that move together, summed (design §6.2). The sum has to be exact and every link has
to be one that can exist. Rule: the body's carrier (:func:`urdf_ident.model.prior.carriers`) takes the whole
change, all other links stay as the URDF states them. Where that would make the carrier impossible or change its
mass out of proportion, the change is shared by all links that have a mass, such that the sum of their entropic
(log-det) divergences from the URDF is least: a light link, of which the URDF must be about right in absolute terms,
then hardly changes, and no link can become impossible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..consistency.repair import MARGIN, moving_groups, repaired_theta, small_body
from ..errors import EstimationError, check_shape
from ..model.inertia import Array, from_pseudo_inertia, margins, pseudo_inertia, transform
from ..model.robot import Body, LumpedLink, Robot

#: The carrier's mass may change by this factor, or by the body's own, before the change is shared.
_MASS_FACTOR = 2.0
#: A change of a body smaller than this is rounding.
_ROUNDING = 1e-13
#: Mass of a link that must have one and has none, as a fraction of its body's.
_SMALL = 1e-3


@dataclass(frozen=True)
class _Piece:
    """A lumped link with a mass: ``pseudo`` (4, 4) in the body's frame; ``written`` is the URDF's own, or None."""

    link: LumpedLink
    pseudo: Array
    written: Array | None


def split_bodies(robot: Robot, theta: Array) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Takes every moving body apart into its links.

    Args:
        robot: The robot.
        theta: Inertial parameters of its bodies, shape (10·n,), each able to exist with a relative margin of 1e-6.

    Returns:
        Link name → ten parameters in the link's frame, shape (10,), for all links that carry mass; links of
        which nothing has to change keep the URDF's numbers bit for bit. And notes: what was done out of the
        ordinary.

    Raises:
        ShapeError: ``theta`` has the wrong length.
        EstimationError: A body cannot exist.
    """
    values = np.asarray(theta, dtype=float)
    check_shape("theta", values.shape, (10 * robot.n,))
    links: dict[str, Array] = {}
    notes: list[str] = []
    for body, ten in zip(robot.bodies, values.reshape(-1, 10), strict=True):
        if margins(ten).relative < 0.9 * MARGIN:
            raise EstimationError(f"body '{body.name}' cannot exist, so its links cannot", got=margins(ten), where=robot.path)
        pieces, said = _pieces(robot, body, ten)
        found, more = _share(body, ten, pieces)
        links.update(found)
        notes += [*said, *more]
    return links, tuple(notes)


def _pieces(robot: Robot, body: Body, theta: Array) -> tuple[list[_Piece], list[str]]:
    """The links that carry the body's mass, carrier first, as the URDF states them (repaired where it must be)."""
    pieces, notes = [], []
    stated = {link.name: robot.description.links[link.name].theta for link in body.links}
    heavy = {name for name, own in stated.items() if own is not None and own.any()}
    bare = _bare_links(robot, heavy or {body.name}) & set(stated)
    for link in body.links:
        own = stated[link.name]
        if own is not None and own.any():
            prior = repaired_theta(own, small_mass=_SMALL * theta[0])
            if not np.array_equal(prior, own):
                notes.append(
                    f"link '{link.name}' cannot exist as the URDF states it: repaired before body '{body.name}' was split"
                )
                own = None
        elif link.name in bare:
            prior, own = small_body(_SMALL * theta[0]), None
            notes.append(
                f"link '{link.name}' moves in the URDF but has no mass: {prior[0]:.3g} kg of body '{body.name}' put there"
            )
        elif not heavy and link.name == body.name:
            prior, own = theta, None
        else:
            continue
        pieces.append(_Piece(link, pseudo_inertia(transform(prior, link.rotation, link.translation)), own))
    first = pieces[0].link.name == body.name and body.name not in bare
    carrier = pieces.pop(0 if first else max(range(len(pieces)), key=lambda k: float(pieces[k].pseudo[3, 3])))
    return [carrier, *pieces], notes


def _bare_links(robot: Robot, heavy: set[str]) -> set[str]:
    """Links that the URDF moves by a joint of their own (also a locked one) with nothing heavy fixed to them."""
    return {root for root, members in moving_groups(robot.description) if not heavy & set(members)}


def _share(body: Body, theta: Array, pieces: list[_Piece]) -> tuple[dict[str, Array], list[str]]:
    """The rule of the module's docstring."""
    total, carrier, others = pseudo_inertia(theta), pieces[0], pieces[1:]
    own = total - sum((piece.pseudo for piece in others), np.zeros((4, 4)))
    size = np.sqrt(np.diag(total))
    if carrier.written is not None and (np.abs(own - carrier.pseudo) <= _ROUNDING * np.outer(size, size)).all():
        return {piece.link.name: _quoted(piece, piece.pseudo) for piece in pieces}, []
    stated = sum((piece.pseudo[3, 3] for piece in pieces), 0.0)
    factor = max(_MASS_FACTOR, total[3, 3] / stated, stated / total[3, 3])
    plausible = not others or 1.0 / factor <= own[3, 3] / carrier.pseudo[3, 3] <= factor
    if plausible and margins(_in_link(carrier, own)).relative >= MARGIN:
        found = {piece.link.name: _quoted(piece, piece.pseudo) for piece in others}
        return {**found, carrier.link.name: _in_link(carrier, own)}, []
    shares = entropic_shares(total, np.array([piece.pseudo for piece in pieces]))
    names = ", ".join(f"'{piece.link.name}'" for piece in pieces)
    note = f"body '{body.name}': its change does not fit into link '{carrier.link.name}' alone and is shared by {names}"
    return {piece.link.name: _in_link(piece, share) for piece, share in zip(pieces, shares, strict=True)}, [note]


def _quoted(piece: _Piece, pseudo: Array) -> Array:
    return piece.written if piece.written is not None else _in_link(piece, pseudo)


def _in_link(piece: _Piece, pseudo: Array) -> Array:
    """From the body's frame to the link's."""
    back = piece.link.rotation.T
    return transform(from_pseudo_inertia(pseudo), back, -back @ piece.link.translation)


def entropic_shares(total: Array, priors: Array) -> Array:
    """Splits a body such that its parts change least in the entropic sense.

    Minimises ``Σ tr(P0⁻¹P) − log det(P0⁻¹P)`` under ``ΣP = total`` (the log-det divergence of Lee, Wensing, Park
    2020). The optimum is ``P = (P0⁻¹ + L)⁻¹`` with one multiplier L for all parts, found by Newton's method
    on the convex dual in whitened coordinates; the answer does not depend on frames or units.

    Args:
        total: Pseudo-inertia of the body, shape (4, 4), positive definite.
        priors: Of its k parts, shape (k, 4, 4), positive definite, in the same frame.

    Returns:
        Shape (k, 4, 4); they sum to ``total`` and each is positive definite.

    Raises:
        EstimationError: A matrix is not positive definite.
    """
    try:
        white = np.linalg.cholesky(total)
        roots = np.linalg.cholesky(np.linalg.solve(white, np.linalg.solve(white, priors).transpose(0, 2, 1)))
    except np.linalg.LinAlgError as error:
        raise EstimationError("only bodies that can exist can be split", where="entropic_shares") from error
    basis = _symmetric_basis()
    multiplier = np.zeros((4, 4))
    for _ in range(200):
        parts = _parts(roots, multiplier)
        gradient = np.einsum("aij,ij->a", basis, np.eye(4) - parts.sum(axis=0))
        hessian = np.einsum("aij,kjl,blm,kmi->ab", basis, parts, basis, parts, optimize=True)
        step = -np.linalg.solve(hessian, gradient)
        decrement = float(np.sqrt(max(0.0, -gradient @ step)))
        # Damped Newton of a self-concordant function: stays inside the domain and always converges.
        length = 1.0 if decrement < 0.25 else 1.0 / (1.0 + decrement)
        multiplier = multiplier + length * np.einsum("a,aij->ij", step, basis)
        if decrement < 1e-10:
            break
    else:
        raise EstimationError("the split of a body did not converge", got=f"decrement {decrement:.3g}", where="entropic_shares")
    shares = white @ _parts(roots, multiplier) @ white.T
    shares = 0.5 * (shares + shares.transpose(0, 2, 1))
    largest = int(np.argmax(np.trace(roots @ roots.transpose(0, 2, 1), axis1=1, axis2=2)))
    shares[largest] += total - shares.sum(axis=0)
    return shares


def _parts(roots: Array, multiplier: Array) -> Array:
    """``(P0⁻¹ + L)⁻¹`` without inverting P0, which may be nearly singular."""
    inner = np.eye(4) + roots.transpose(0, 2, 1) @ multiplier @ roots
    parts: Array = roots @ np.linalg.solve(inner, roots.transpose(0, 2, 1))
    return 0.5 * (parts + parts.transpose(0, 2, 1))


def _symmetric_basis() -> Array:
    """Orthonormal basis of the symmetric 4×4 matrices, shape (10, 4, 4)."""
    basis = []
    for i in range(4):
        for j in range(i + 1):
            item = np.zeros((4, 4))
            item[i, j] = item[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(item)
    return np.array(basis)
