"""Host-side checks of concrete inertias; nothing here is traced or differentiated."""

import jax.core
import numpy as np
from jax.typing import ArrayLike

# (sum of two, third) of the triangle inequality, as indices into (Ixx, Iyy, Izz).
_TRIANGLES = (((0, 1), 2), ((0, 2), 1), ((1, 2), 0))
_MOMENT_NAMES = ("Ixx", "Iyy", "Izz")


def concrete_array(value: ArrayLike, caller: str) -> np.ndarray:
    """`value` as a float64 NumPy array; raises for tracers, and says what to do instead."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{caller} looks at numbers and returns Python values, so it cannot run under "
            "jit, vmap or grad. Call it outside the transformed function."
        )
    return np.asarray(value, dtype=np.float64)


def principal_moments(moments_products: np.ndarray) -> np.ndarray:
    """Principal moments of six inertia numbers, ascending."""
    xx, yy, zz, xy, xz, yz = moments_products
    return np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def rotational_inertia_report(moments_products: np.ndarray, epsilon: float, scale: float, about: str) -> str | None:
    """Says why six numbers cannot be a rotational inertia, with the numbers; None if they can.

    The tests are Drake's (RotationalInertia::CouldBePhysicallyValid): no NaN, then diagonal and
    principal moments nonnegative and within the triangle inequality, to 16 epsilon times the
    largest of `scale` and the moments. `epsilon` is that of the dtype the numbers were stored in.
    """
    if np.isnan(moments_products).any():
        return f"NaN among the moments and products of inertia {_numbers(moments_products)}"
    if not np.isfinite(moments_products).all():
        return f"infinite moments or products of inertia {_numbers(moments_products)}"
    principal = principal_moments(moments_products)
    tolerance = 16.0 * epsilon * max(scale, float(np.abs(principal).max()))
    diagonal = _moments_report(moments_products[:3], tolerance, f"about {about}")
    if diagonal is not None:
        return diagonal
    return _moments_report(principal, tolerance, f"for the principal moments about {about}")


def spatial_inertia_report(mass: np.ndarray, com: np.ndarray, unit_inertia: np.ndarray, epsilon: float) -> str | None:
    """Says why a spatial inertia is impossible, with the numbers; None if it is possible.

    Tolerances are relative to the largest moment about P, because that is where the stored
    numbers were rounded. Drake measures about the centre of mass; the two agree when P is there.
    """
    if np.isnan(mass) or np.isnan(com).any():
        return f"NaN in mass {mass:.6g} or centre of mass {_numbers(com)}"
    if not (np.isfinite(mass) and np.isfinite(com).all()):
        return f"infinite mass {mass:.6g} or centre of mass {_numbers(com)}"
    if mass < 0.0:
        return f"negative mass: {mass:.6g} kg < 0"
    x, y, z = com
    offset = [y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z]
    scale = max(float(np.abs(unit_inertia[:3]).max()), float(max(offset[:3])))
    central = unit_inertia - np.array(offset)
    problem = rotational_inertia_report(central, epsilon, scale, "the centre of mass")
    return None if problem is None else f"{problem} (unit inertia, m^2; mass {mass:.6g} kg)"


def _moments_report(moments: np.ndarray, tolerance: float, where: str) -> str | None:
    for name, moment in zip(_MOMENT_NAMES, moments, strict=True):
        if moment < -tolerance:
            return f"negative moment of inertia {where}: {name} = {moment:.6g} < 0"
    for (i, j), k in _TRIANGLES:
        if moments[i] + moments[j] + tolerance < moments[k]:
            names = [_MOMENT_NAMES[index] for index in (i, j, k)]
            inequality = "{} + {} >= {}".format(*names)
            numbers = f"{moments[i]:.6g} + {moments[j]:.6g} < {moments[k]:.6g}"
            return f"triangle inequality {inequality} fails {where}: {numbers}"
    return None


def _numbers(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.6g}" for value in values) + "]"
