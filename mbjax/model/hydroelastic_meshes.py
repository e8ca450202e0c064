"""The meshes of a model's hydroelastic geometries, and whether they fit the numbers of now."""

from jaxtyping import Array, Bool, Float

from mbjax.geometry import Shape
from mbjax.geometry.hydroelastic import HydroelasticTopology, hydroelastic_geometry, is_inside_out

from .contact_layout import CollisionGeometryRecord
from .multibody_model import MultibodyModel

WHAT_FITS = (
    "as the mesh needs it that was made at finalize: the shortest side of a box stays the shortest, a long cylinder "
    "long, a short one short, and a hull keeps its facets"
)


def hydroelastic_topology(model: MultibodyModel, geometry: int) -> HydroelasticTopology:
    """What is static of a geometry's mesh: it follows from the shape as it was registered."""
    record = model.layout.contact.geometries[geometry]
    (shape,) = (g.shape for g in model.layout.collision[record.body] if g.name == record.name)
    return topology_of_record(record, shape)


def topology_of_record(record: CollisionGeometryRecord, shape: Shape) -> HydroelasticTopology:
    """What is static of the mesh of a geometry with hydroelastic properties."""
    of = record.hydroelastic
    assert of is not None
    return hydroelastic_geometry(
        shape,
        compliance="rigid" if of.compliance == "rigid" else "compliant",
        resolution_hint=of.resolution_hint,
        margin=of.margin,
        slab_thickness=of.slab_thickness,
        surface=of.surface,
    )


def geometries_with_surfaces(model: MultibodyModel) -> list[int]:
    """Places of the geometries that touch another one by a surface."""
    contact = model.layout.contact
    return sorted({g for i in contact.surface_pairs for g in contact.pairs[i]})


def numbers_of_shape(model: MultibodyModel, geometry: int) -> Float[Array, "..."]:
    """Lengths of a collision geometry's shape, or the vertices of its hull."""
    record = model.layout.contact.geometries[geometry]
    if record.num_vertices:
        return model.collision.vertices[record.vertices]
    return model.collision.size[record.sizes]


def is_mesh_inside_out(model: MultibodyModel, geometry: int) -> Bool[Array, ""]:
    """Whether the mesh of a geometry with a surface does not fit its numbers."""
    return is_inside_out(hydroelastic_topology(model, geometry), numbers_of_shape(model, geometry))
