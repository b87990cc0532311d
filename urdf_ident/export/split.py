"""Splits identified bodies into the links of the URDF.

Only bodies are identifiable, that is sums over links that move together. The sum must be exact and every link must be
physically consistent. By default the body's carrier (:attr:`.Body.carrier`) takes the whole change, and
all other links keep the URDF's values. If that would make the carrier physically inconsistent or change its mass too much,
all links with mass are changed by the same linear map, which transforms the URDF's body into the identified one
(:func:`_transported`) and preserves physical consistency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..consistency.repair import ROUNDING, acceptable, moving_groups, repaired_theta, small_body
from ..errors import EstimationError, ModelError
from ..grouping import abbreviated
from ..linalg import Array, shaped
from ..model.inertia import MARGIN, from_pseudo_inertia, margins, pseudo_inertia, transform
from ..model.robot import Body, LumpedLink, Robot

#: Largest factor by which the carrier's mass may change before the change is shared (or the body's own, if larger).
_MASS_FACTOR = 2.0
#: Change of a body, relative to its size, up to which it is unchanged: rounding.
_UNCHANGED = 1e-13
#: Part of the margin that a body given directly has to keep.
_OF_GIVEN = 0.9
#: Part of the margin of a repaired body that is left after rounding, as it was raised to the margin itself.
_LEFT = 0.99
#: Parts of every link that become like the whole body, tried in turn while a link is too thin for engines.
_LIKE_BODY = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
#: Mass of a link that lacks a required mass, as a fraction of its body's.
_SMALL = 1e-3


@dataclass(frozen=True)
class _Piece:
    """A lumped link with mass: ``pseudo`` (4, 4) in the body's frame; ``written``: the URDF's parameters, or None."""

    link: LumpedLink
    pseudo: Array
    written: Array | None

    @property
    def kept(self) -> Array:
        """Its parameters in the link's frame if it does not change: those of the URDF, digit for digit, if it states them."""
        return self.written if self.written is not None else self.in_link(self.pseudo)

    def in_link(self, pseudo: Array) -> Array:
        """Parameters in the link's frame, shape (10,), from a pseudo-inertia in the body's frame, shape (4, 4)."""
        back = self.link.rotation.T
        return transform(from_pseudo_inertia(pseudo), back, -back @ self.link.translation)


def exported_links(robot: Robot, theta: Array, repair: bool = False) -> tuple[Array, dict[str, Array], tuple[str, ...]]:
    """The links of a robot that an export writes: split bodies, physically consistent as engines want them.

    Args:
        theta: Inertial parameters of its bodies, shape (10·n,) [kg, kg·m, kg·m²].
        repair: True to take the nearest physically consistent robot, with a note, if ``theta`` is not consistent.

    Returns:
        theta as it is written, shape (10·n,); link name → ten parameters in the link's frame, shape (10,), of links that were
        identified or have to change; and notes.

    Raises:
        ShapeError: ``theta`` has the wrong length.
        ModelError: A number is not finite, or a body is not physically consistent and ``repair`` is off.
    """
    values, notes = physical_bodies(robot, shaped("theta", theta, (robot.n_inertial,)), repair)
    links, more = split_bodies(robot, values)
    # links that no joint moves are not identified, but engines would reject inconsistent ones
    moving, repaired, rest = {link.name for body in robot.bodies for link in body.links}, dict[str, Array](), []
    for name, link in robot.description.links.items():
        if name not in moving and link.theta is not None and link.theta.any() and not acceptable(link.theta):
            repaired[name] = repaired_theta(link.theta)
            rest.append(f"link '{name}' does not move, but is not physically consistent as the URDF states it: repaired")
    return values, {**repaired, **links}, (*notes, *more, *rest)


def joint_values(robot: Robot, **tables: Mapping[str, float] | None) -> tuple[dict[str, dict[str, float]], tuple[str, ...]]:
    """Friction or rotor inertia by joint; negative values, which no format can hold, are set to zero, with a note.

    Args:
        tables: Joint name → value, by the attribute's name; attributes and joints that are left out are not changed.

    Returns:
        Joint name → attribute → value, and notes.
    """
    values, notes = dict[str, dict[str, float]](), []
    for key, table in tables.items():
        for name, value in (table or {}).items():
            robot.index(name)
            if not np.isfinite(value):
                raise ModelError(f"{key} of joint '{name}' is not finite", where=robot.path, got=value)
            if value < 0:
                notes.append(f"joint '{name}': {key} {value:.4g} is negative: written as 0")
            values.setdefault(name, {})[key] = max(float(value), 0.0)
    return values, tuple(notes)


def split_bodies(robot: Robot, theta: Array) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Splits every moving body into its links.

    Args:
        theta: Inertial parameters of its bodies, shape (10·n,), physically consistent with a relative margin of 1e-6.

    Returns:
        Link name → ten parameters in the link's frame, shape (10,), for all links with mass; unchanged links keep the
        URDF's numbers bit for bit. And notes on exceptions.

    Raises:
        ShapeError: ``theta`` has the wrong length.
        EstimationError: A body is not physically consistent with this margin.
    """
    values = shaped("theta", theta, (robot.n_inertial,))
    links: dict[str, Array] = {}
    notes: list[str] = []
    for body, ten in zip(robot.bodies, values.reshape(-1, 10), strict=True):
        if margins(ten).relative < _OF_GIVEN * MARGIN:
            raise EstimationError(
                f"body '{body.name}' is not physically consistent, so its links are not either",
                got=margins(ten),
                where=robot.path,
            )
        pieces, repairs = _pieces(robot, body, ten)
        inertials, sharing = _split(body, ten, pieces)
        links.update(inertials)
        notes += repairs + sharing
    return links, tuple(notes)


def _pieces(robot: Robot, body: Body, ten: Array) -> tuple[list[_Piece], list[str]]:
    """The links of a body that have, or need, a mass, carrier first, with the URDF's parameters; notes on repaired ones."""
    pieces, notes = list[_Piece](), list[str]()
    stated = {link.name: robot.description.links[link.name].theta for link in body.links}
    # where the URDF gives no link a mass, the body's first link takes all of it
    weighing = {name for name, theta in stated.items() if theta is not None and theta.any()} or {body.name}
    # links that a joint (also a locked one) moves, with no weighing link fixed to them: engines refuse them without a mass
    groups = [(root, set(members)) for root, members in moving_groups(robot.description) if root in stated]
    bare = {root for root, members in groups if not members & weighing}
    for link in body.links:
        written = stated[link.name]
        if written is not None and written.any():  # the URDF states a mass
            prior = repaired_theta(written, small_mass=_SMALL * ten[0])
            if not np.array_equal(prior, written):
                notes.append(
                    f"link '{link.name}' is not physically consistent in the URDF: repaired before body '{body.name}' was split"
                )
                written = None
        elif link.name in bare:  # it needs a mass: a small one
            prior, written = small_body(_SMALL * ten[0]), None
            notes.append(
                f"link '{link.name}' moves in the URDF but has no mass: {prior[0]:.3g} kg of body '{body.name}' put there"
            )
        elif link.name in weighing:  # of a body whose links have no mass, the first one: what was identified
            prior, written = ten, None
        else:  # it has no mass and needs none
            continue
        pieces.append(_Piece(link, pseudo_inertia(transform(prior, link.rotation, link.translation)), written))
    carries = pieces[0].link.name == body.name and body.name not in bare  # the link that names the body, if it weighs
    heaviest = max(range(len(pieces)), key=lambda k: float(pieces[k].pseudo[3, 3]))
    carrier = pieces.pop(0 if carries else heaviest)
    return [carrier, *pieces], notes


def physical_bodies(robot: Robot, theta: Array, repair: bool = False) -> tuple[Array, tuple[str, ...]]:
    """Moves bodies at the boundary of physical consistency inside, and repairs inconsistent ones if allowed.

    Args:
        theta: Inertial parameters of its bodies, shape (10·n,) [kg, kg·m, kg·m²].
        repair: True to replace an inconsistent body by the nearest physically consistent one in the metric of the
            URDF's body.

    Returns:
        theta, shape (10·n,), every body with a relative margin of 1e-6, and a note on each change.
    """
    if not np.isfinite(theta).all():
        raise ModelError(
            "theta is not finite", where=robot.path, got=int((~np.isfinite(theta)).sum()), expected="no NaN or inf"
        )
    bodies, notes = theta.reshape(-1, 10).copy(), []
    for k, (body, prior) in enumerate(zip(robot.bodies, robot.inertials, strict=True)):
        old, margin = bodies[k].copy(), margins(bodies[k])
        if acceptable(old):
            continue
        if (outside := margin.relative < -ROUNDING) and not repair:
            raise ModelError(
                f"body '{body.name}' is not physically consistent",
                where=robot.path,
                got=f"mass {margin.mass:.6g} kg, smallest over largest principal second moment {margin.relative:.3g}",
                expected="mass > 0, triangle inequality",
                remedy="use the LMI step, or repair=True to write the nearest body",
            )
        bodies[k] = repaired_theta(old, reference=repaired_theta(prior) if outside else None)
        if outside:
            what = "is not physically consistent: the nearest physically consistent one was written"
        elif margin.relative >= _LEFT * MARGIN:
            what = "is so small that strict engines take it for none: raised"
        else:
            what = "lies on the boundary: moved inside it"
        change = np.abs(bodies[k] - old)
        notes.append(f"body '{body.name}' {what} (mass by {change[0]:.3g} kg, inertia by {change[4:].max():.3g} kg·m²)")
    return bodies.reshape(-1), tuple(notes)


def _split(body: Body, theta: Array, pieces: list[_Piece]) -> tuple[dict[str, Array], list[str]]:
    """Splits one body by the rule of the module's docstring; ``pieces``: carrier first."""
    total, carrier, others = pseudo_inertia(theta), pieces[0], pieces[1:]
    remainder = total - sum((piece.pseudo for piece in others), np.zeros((4, 4)))
    size = np.sqrt(np.diag(total))
    if carrier.written is not None and (np.abs(remainder - carrier.pseudo) <= _UNCHANGED * np.outer(size, size)).all():
        return {piece.link.name: piece.kept for piece in pieces}, []
    stated = sum((piece.pseudo[3, 3] for piece in pieces), 0.0)
    factor = max(_MASS_FACTOR, total[3, 3] / stated, stated / total[3, 3])
    plausible = not others or 1.0 / factor <= remainder[3, 3] / carrier.pseudo[3, 3] <= factor
    changed = carrier.in_link(remainder)
    if plausible and margins(changed).relative >= MARGIN and acceptable(changed):
        return {**{piece.link.name: piece.kept for piece in others}, carrier.link.name: changed}, []
    shares = _shared_by_all(total, pieces)
    names = abbreviated([f"'{piece.link.name}'" for piece in pieces])
    note = f"body '{body.name}': its change does not fit into link '{carrier.link.name}' alone and is shared by {names}"
    return {piece.link.name: piece.in_link(share) for piece, share in zip(pieces, shares, strict=True)}, [note]


def _shared_by_all(total: Array, pieces: list[_Piece]) -> Array:
    """Pseudo-inertias of all pieces, shape (k, 4, 4), that sum to that of the body, and none too thin or light for engines."""
    moved = _transported(total, np.array([piece.pseudo for piece in pieces]))
    like_body: Array = (moved[:, 3, 3] / total[3, 3])[:, None, None] * total
    for part in _LIKE_BODY:
        shares: Array = (1.0 - part) * moved + part * like_body
        if all(margins(piece.in_link(share)).relative >= MARGIN for piece, share in zip(pieces, shares, strict=True)):
            break
    # the heaviest link gives inertia to links whose inertia engines would treat as zero; the sum is unchanged
    heaviest = int(np.argmax(shares[:, 3, 3]))
    for k, piece in enumerate(pieces):
        if k != heaviest:
            theta = piece.in_link(shares[k])
            more = 0.5 * float((repaired_theta(theta) - theta)[[4, 6, 9]].max()) * np.diag([1.0, 1.0, 1.0, 0.0])
            shares[k] += more
            shares[heaviest] -= more
    return shares


def _transported(total: Array, priors: Array) -> Array:
    """Changes all parts of a body by one linear map such that they sum to a given body.

    ``P_k = G P0_k Gᵀ`` with ``G = (P S0⁻¹)^½``, S0 the sum of the priors: the optimal transport map between Gaussians with
    these second moments, that is the least displacement of mass. The result does not depend on frames or units, and scales
    with the mass of the body. Pseudo-inertias of the body, P of shape (4, 4), and of its k parts, (k, 4, 4), are in one frame
    and positive definite.
    """
    try:
        root = np.linalg.cholesky(priors.sum(axis=0))
        white = np.linalg.solve(root, np.linalg.solve(root, total).T)
        values, axes = np.linalg.eigh(0.5 * (white + white.T))
        np.linalg.cholesky(total)
    except np.linalg.LinAlgError as error:
        raise EstimationError("only physically consistent bodies can be split", where="transported") from error
    stretch = root @ (axes * np.sqrt(values)) @ axes.T @ np.linalg.inv(root)
    moved: Array = stretch @ priors @ stretch.T
    moved = 0.5 * (moved + moved.transpose(0, 2, 1))
    moved[0] += total - moved.sum(axis=0)  # rounding
    return moved
