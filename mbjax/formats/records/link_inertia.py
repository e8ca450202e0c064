"""Mass properties of a link from its mass and central moments of inertia, whatever format they are written in."""

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.model import REPAIRED, USED
from mbjax.spatial import RigidTransform, SpatialInertia, UnitInertia

from ..notes.load_notes import LoadNotes
from ..xml.tree import XmlElement


def spatial_inertia(
    inertial: XmlElement,
    link_name: str,
    mass: float,
    central: np.ndarray,
    X_BBcm: RigidTransform,
    notes: LoadNotes,
    on_invalid: str,
) -> SpatialInertia | None:
    """M_BBo_B from the mass and the moments in the axes of the frame at the centre of mass; None without mass."""
    if mass == 0.0:
        if np.any(central != 0.0):
            _refuse_or_note(
                inertial, link_name, notes, on_invalid,
                "the mass is 0 kg but the moments of inertia are not; taken as massless",
                status=REPAIRED,
            )  # fmt: skip
        return None
    if not np.any(central != 0.0):
        notes.add(
            USED,
            f"link '{link_name}'",
            f"{mass:g} kg without moments of inertia: a particle at its centre of mass",
            inertial.place,
        )
    rotation, com = np.asarray(X_BBcm.rotation), np.asarray(X_BBcm.translation)
    with np.errstate(over="ignore", invalid="ignore"):
        G_BBcm_B = rotation @ central @ rotation.T / mass
        G_BBo_B = G_BBcm_B + np.dot(com, com) * np.eye(3) - np.outer(com, com)
    six = [G_BBo_B[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    largest = float(np.abs([mass, *com, *six]).max())
    if not largest < float(jnp.finfo(jax.dtypes.canonicalize_dtype(float)).max):
        raise inertial.error(
            f"link '{link_name}': mass {mass:g} kg, centre of mass and moments of inertia give numbers "
            "beyond what floating point holds; check their units (kg, m, kg m²)."
        )
    spatial_inertia = SpatialInertia(mass, com, UnitInertia(*six), skip_validity_check=True)
    problem = spatial_inertia.physical_validity_report()
    if problem is not None:
        _refuse_or_note(inertial, link_name, notes, on_invalid, problem, status=None)
    return spatial_inertia


def _refuse_or_note(
    inertial: XmlElement, link_name: str, notes: LoadNotes, on_invalid: str, problem: str, status: str | None
) -> None:
    """The builder itself reports inertias it keeps, so those need no entry here (status None)."""
    if on_invalid == "error":
        raise inertial.error(
            f"link '{link_name}': the mass properties are not physical: {problem}. Correct <inertial>, or "
            'load with inertia="warn" to keep them.'
        )
    if status is not None:
        notes.add(status, f"link '{link_name}'", problem, inertial.place)
    notes.warn(
        "mass properties that no body can have are kept as they stand",
        f"link '{link_name}' (line {inertial.line}): {problem}",
    )
