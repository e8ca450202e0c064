"""Which pairs of shapes touch by a hydroelastic surface and which at points, as in Drake."""

from collections.abc import Sequence

from mbjax.errors import ModelError
from mbjax.geometry import Mesh
from mbjax.geometry.hydroelastic import reason_for_no_surface

from .declarations import RegisteredCollision


def pairs_with_surfaces(
    contact_model: str, collisions: Sequence[RegisteredCollision], pairs: Sequence[tuple[int, int]]
) -> set[tuple[int, int]]:
    """The pairs that touch by a surface under a contact model.

    Raises `ModelError` under `"hydroelastic"`, which has no contact at points, for a pair that has no surface.
    """
    if not contact_model.startswith("hydroelastic"):
        return set()
    lacking = {(a, b): why_no_surface(collisions[a], collisions[b]) for a, b in pairs}
    for (a, b), why in lacking.items():
        if why is not None and contact_model == "hydroelastic":
            A, B = collisions[a], collisions[b]
            raise ModelError(
                f"contact_model='hydroelastic': collision geometries '{A.name}' and '{B.name}' may touch, but {why}. "
                f"Give them other hydroelastic properties, exclude_collisions_between('{A.body.name}', "
                f"'{B.body.name}'), or choose 'hydroelastic_with_fallback', with which they touch at points."
            )
    return {pair for pair, why in lacking.items() if why is None}


def why_no_surface(A: RegisteredCollision, B: RegisteredCollision) -> str | None:
    """Why two shapes have no contact surface, as part of a sentence; None where they have one."""
    sides = (A.properties.hydroelastic, A.geometry.shape), (B.properties.hydroelastic, B.geometry.shape)
    for collision, (properties, shape) in zip((A, B), sides, strict=True):
        if properties is None:
            return f"'{collision.name}' has no hydroelastic properties"
        if isinstance(shape, Mesh) and properties.compliance == "compliant":
            return (
                f"'{collision.name}' is a compliant Mesh, which has no pressure field: make it rigid, or take its "
                "convex hull (meshes='hull')"
            )
        if isinstance(shape, Mesh) and shape.path is None:
            return f"the Mesh '{collision.name}' has no file on disk ({shape.filename})"
    (properties_A, shape_A), (properties_B, shape_B) = sides
    assert properties_A is not None
    assert properties_B is not None
    return reason_for_no_surface((properties_A.compliance, shape_A), (properties_B.compliance, shape_B))
