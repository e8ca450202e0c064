"""Surfaces of contact of deformable bodies at a state."""

from mbjax.contact import calc_surfaces_of_deformables, names_of_pairs
from mbjax.execution import call_compiled
from mbjax.geometry.hydroelastic import ContactSurface
from mbjax.kinematics import calc_position_kinematics
from mbjax.model import MultibodyModel

from .deformable_statics import require_deformables
from .state import State, as_state


def deformable_contact_surfaces(model: MultibodyModel, state: State) -> dict[tuple[str, str], ContactSurface]:
    """The polygons in which deformable bodies touch at a state, by the names of each pair as contact results have them.

    On a collision geometry they have the pressure of its field; between two deformable bodies their common depth times
    1e8 Pa/m. Normals point into the first body of the pair. `Outputs.deformable_contacts` has the forces of a step from
    there, without those polygons that it counts as left out.
    """
    layout = require_deformables(model, "deformable_contact_surfaces").layout
    names = names_of_pairs(
        model,
        [(pair.deformable, pair.geometry) for pair in layout.contacts],
        [(pair.deformable_A, pair.deformable_B) for pair in layout.body_contacts],
    )
    return dict(zip(names, call_compiled(_surfaces, model, as_state(model, state)), strict=True))


def _surfaces(model: MultibodyModel, state: State) -> tuple[ContactSurface, ...]:
    assert state.nodes is not None
    return calc_surfaces_of_deformables(model, calc_position_kinematics(model, state.q), state.nodes.position)
