"""Goals of the whole model: its centre of mass, that one's velocity, and its momentum."""

from typing import Any

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.dynamics import (
    calc_center_of_mass_and_jacobian,
    center_of_mass_position_in_world,
    center_of_mass_translational_velocity_in_world,
    spatial_momentum_in_world_about_point,
)
from mbjax.kinematics import for_worlds_of
from mbjax.model import MultibodyModel
from mbjax.simulation import State

from .goals import state_of, vectors
from .slopes import Slopes
from .weights import weight_of


class CenterOfMass(eqx.Module):
    """Distance of the whole model's centre of mass from p_WCcm."""

    p_WCcm: Float[Array, "3"]
    weight: Float[Array, "..."]

    def __init__(self, p_WCcm: ArrayLike, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.p_WCcm = vectors("CenterOfMass", "p_WCcm", p_WCcm, 3)
        self.weight = weight_of("CenterOfMass", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        state = state_of(x)
        return self.weight * (center_of_mass_position_in_world(model, state.q) - self.p_WCcm)

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobian, that of the centre's velocity."""
        p_WCcm, J = for_worlds_of(calc_center_of_mass_and_jacobian, model, state.q)
        return [Slopes(p_WCcm - self.p_WCcm, by_q=J).scaled(self.weight)]


class CenterOfMassVelocity(eqx.Module):
    """Velocity of the whole model's centre of mass, less a reference."""

    v_WCcm: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(self, v_WCcm: ArrayLike = 0.0, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.v_WCcm = vectors("CenterOfMassVelocity", "v_WCcm", v_WCcm, 3, is_repeated=True)
        self.weight = weight_of("CenterOfMassVelocity", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        state = state_of(x)
        return self.weight * (center_of_mass_translational_velocity_in_world(model, state.q, state.v) - self.v_WCcm)


class Momentum(eqx.Module):
    """Spatial momentum about the centre of mass, angular part first, less a reference."""

    L_WCcm: Float[Array, "..."]
    weight: Float[Array, "..."]

    def __init__(self, L_WCcm: ArrayLike = 0.0, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None):
        self.L_WCcm = vectors("Momentum", "L_WCcm", L_WCcm, 6, is_repeated=True)
        self.weight = weight_of("Momentum", weight, factor)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        state = state_of(x)
        p_WCcm = center_of_mass_position_in_world(model, state.q)
        return self.weight * (spatial_momentum_in_world_about_point(model, state.q, state.v, p_WCcm) - self.L_WCcm)
