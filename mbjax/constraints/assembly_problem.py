"""The assembly problem: conditions for the configuration nearest to a guess that satisfies the constraints.

    minimize 1/2 δᵀ W δ   subject to   error(q) = 0,      q = q_guess ⊕ δ

with δ in velocity coordinates, so that q stays on the configuration manifold. With multipliers λ the conditions are

    r(q, λ) = [∂/∂d 1/2 δᵀ W δ + Gᵀ λ;  error] = 0,       where q moves along d,

which `assembly_search` solves. Everything here is for one world.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import calc_position_kinematics, difference_configuration, integrate_configuration
from mbjax.model import (
    ContactConstraint,
    CustomConstraint,
    LockConstraint,
    MultibodyModel,
    locked_velocities,
)

from .constraint_kinematics import BoundConstraintSet, calc_constraint_terms


class AssemblyProblem(NamedTuple):
    """The assembly problem: nearest to `q_guess` in the metric W (nv, nv), under the rows of `cset` with positions."""

    model: MultibodyModel
    cset: BoundConstraintSet
    q_guess: Float[Array, " nq"]
    W: Float[Array, "nv nv"]


class Point(NamedTuple):
    """A configuration with multipliers, and the objective, gradient, error and Jacobian there."""

    q: Float[Array, " nq"]
    multipliers: Float[Array, " nc"]
    objective: Float[Array, ""]
    gradient: Float[Array, " nv"]  # gradient of the objective
    error: Float[Array, " nc"]
    G: Float[Array, "nc nv"]

    @property
    def residual(self) -> Float[Array, " nv+nc"]:
        """Residual r(q, λ) of the conditions."""
        return jnp.concatenate([self.gradient + self.multipliers @ self.G, self.error])


def calc_position_rows(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, " nq"]
) -> tuple[Float[Array, " nc"], Float[Array, "nc nv"]]:
    """Error and G of active rows that constrain positions; zero in other rows and in columns of locked velocities."""
    position = calc_position_kinematics(model, q)
    terms = calc_constraint_terms(model, cset, position, None, q, None)
    counted = terms.active * jnp.asarray(rows_with_position(cset), terms.active.dtype)
    free = jnp.where(locked_velocities(model), 0.0, 1.0)
    return counted * terms.error, counted[:, None] * terms.G * free[None]


def rows_with_position(cset: BoundConstraintSet) -> Bool[np.ndarray, " nc"]:
    """Mask of the rows that constrain positions, not velocities alone."""
    flags = [
        not (
            isinstance(c, ContactConstraint)
            or (isinstance(c, CustomConstraint) and c.level == "velocity")
            or (isinstance(c, LockConstraint) and c.position is None)
        )
        for c in cset.constraints
    ]
    return np.repeat(np.array(flags, bool), [c.num_rows for c in cset.constraints])


def evaluate(problem: AssemblyProblem, q: Array, multipliers: Array) -> Point:
    """Evaluates 1/2 δᵀ W δ, its derivative along each velocity that is not locked, the errors and G."""
    model = problem.model

    def objective(d: Array) -> Array:
        change = difference_configuration(model, problem.q_guess, integrate_configuration(model, q, d))
        return 0.5 * change @ problem.W @ change

    value, gradient = jax.value_and_grad(objective)(jnp.zeros(model.num_velocities, model.dtype))
    gradient = jnp.where(locked_velocities(model), 0.0, gradient)
    return Point(q, multipliers, value, gradient, *calc_position_rows(model, problem.cset, q))


def calc_jacobian(problem: AssemblyProblem, q: Array, multipliers: Array) -> Float[Array, "n n"]:
    """K = ∂r/∂(d, λ): symmetric at the solution, with zero rows and columns for locked velocities."""
    model = problem.model
    at_rest = jnp.zeros(model.num_velocities, model.dtype)

    def moved(d: Array) -> tuple[Array, Array]:
        point = evaluate(problem, integrate_configuration(model, q, d), multipliers)
        return point.residual, point.G

    along_d, G = jax.jacfwd(moved, has_aux=True)(at_rest)
    along_d = jnp.where(locked_velocities(model), 0.0, along_d)
    no_rows = jnp.zeros((G.shape[0], G.shape[0]), G.dtype)
    return jnp.concatenate([along_d, jnp.concatenate([G.T, no_rows])], axis=1)


def calc_active_jacobian(
    model: MultibodyModel, cset: BoundConstraintSet, q: Float[Array, " nq"]
) -> Float[Array, "nc nv"]:
    """G of the active rows; zero rows elsewhere, zero columns for locked velocities."""
    position = calc_position_kinematics(model, q)
    terms = calc_constraint_terms(model, cset, position, None, q, None)
    return jnp.where(locked_velocities(model), 0.0, terms.active[:, None] * terms.G)
