"""A set that collects constraints, after RBDL's ConstraintSet, and binds them to a model."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbjax.errors import ModelError
from mbjax.kinematics import body_poses_in_world
from mbjax.model import (
    AbstractConstraint,
    BallConstraint,
    ContactConstraint,
    CouplerConstraint,
    CustomConstraint,
    DistanceConstraint,
    LockConstraint,
    LoopConstraint,
    MultibodyModel,
    WeldConstraint,
    resolve_constraints,
)

from .bound_constraint_set import BoundConstraintSet
from .custom import evaluate


class ConstraintSet:
    """A set of constraints: `ConstraintSet().add_loop_constraint(...).bind(model)`.

    Every method returns the set. A constraint's arguments are those of its record: `add_contact_constraint(...)`
    adds a `ContactConstraint(...)`.
    """

    def __init__(self, constraints: Iterable[AbstractConstraint] = ()):
        self.constraints: list[AbstractConstraint] = []
        for constraint in constraints:
            self.add_constraint(constraint)

    def add_constraint(self, constraint: AbstractConstraint) -> "ConstraintSet":
        """Adds a constraint record of any kind."""
        if not isinstance(constraint, AbstractConstraint):
            raise ModelError(f"add_constraint: expected an AbstractConstraint, got {type(constraint).__name__}.")
        if constraint.name is not None and any(c.name == constraint.name for c in self.constraints):
            raise ModelError(f"{constraint.label}: the name is taken; names within a set must differ.")
        self.constraints.append(constraint)
        return self

    def add_contact_constraint(self, body: Any, p_BP: Any, normals: Any, **options: Any) -> "ConstraintSet":
        """Adds a contact: a body's point that does not move along the normals (m, 3), given in the world."""
        return self.add_constraint(ContactConstraint(body, p_BP, normals, **options))

    def add_loop_constraint(
        self, predecessor: Any, successor: Any, X_AP: Any, X_BS: Any, axes: Any, **options: Any
    ) -> "ConstraintSet":
        """Adds a loop: keeps a frame of the successor with one of the predecessor along axes (k, 6), rotation first."""
        return self.add_constraint(LoopConstraint(predecessor, successor, X_AP, X_BS, axes, **options))

    def add_ball_constraint(
        self, body_A: Any, p_AP: Any, body_B: Any, p_BQ: Any = None, **options: Any
    ) -> "ConstraintSet":
        """Adds a ball: two points kept together."""
        return self.add_constraint(BallConstraint(body_A, p_AP, body_B, p_BQ, **options))

    def add_weld_constraint(self, body_A: Any, X_AP: Any, body_B: Any, X_BQ: Any, **options: Any) -> "ConstraintSet":
        """Adds a weld: two frames kept together."""
        return self.add_constraint(WeldConstraint(body_A, X_AP, body_B, X_BQ, **options))

    def add_distance_constraint(
        self, body_A: Any, p_AP: Any, body_B: Any, p_BQ: Any, distance: Any, **options: Any
    ) -> "ConstraintSet":
        """Adds a distance constraint: two points kept a distance apart."""
        return self.add_constraint(DistanceConstraint(body_A, p_AP, body_B, p_BQ, distance, **options))

    def add_coupler_constraint(
        self, joint0: Any, joint1: Any, gear_ratio: Any = 1.0, offset: Any = 0.0, **options: Any
    ) -> "ConstraintSet":
        """Adds a coupler: two joints with q0 = gear_ratio q1 + offset."""
        return self.add_constraint(CouplerConstraint(joint0, joint1, gear_ratio, offset, **options))

    def add_lock_constraint(self, joint: Any, position: Any = None, **options: Any) -> "ConstraintSet":
        """Adds a lock: a joint held at a position, or wherever it is."""
        return self.add_constraint(LockConstraint(joint, position, **options))

    def add_custom_constraint(
        self, function: Any, num_rows: int, level: Any = "position", parameters: Any = None, **options: Any
    ) -> "ConstraintSet":
        """Adds a custom constraint: the user's own equations, in JAX."""
        return self.add_constraint(CustomConstraint(function, num_rows, level, parameters, **options))

    def require_model(self, model: Any) -> None:
        """Raises `ModelError`: this set is not bound to any model yet."""
        raise ModelError(
            "the constraint set is not bound to a model: call .bind(model), and pass the BoundConstraintSet that it "
            "returns."
        )

    def bind(self, model: MultibodyModel) -> BoundConstraintSet:
        """Binds the set to a model: looks up references, casts numbers to its dtype, fills in default points."""
        if not isinstance(model, MultibodyModel):
            raise ModelError(
                f"bind takes a finalized model, got {type(model).__name__}; call finalize() first and bind the "
                "model it returns."
            )
        resolved = resolve_constraints(self.constraints, model, model.dtype)
        for constraint in resolved:
            check_function(model, constraint)
        return BoundConstraintSet(tuple(with_default_point(model, c) for c in resolved), model.topology)


def with_default_point(model: MultibodyModel, constraint: AbstractConstraint) -> AbstractConstraint:
    """Completes a ball with only one point: the other coincides with it in the default configuration."""
    if not isinstance(constraint, BallConstraint) or constraint.p_BQ is not None:
        return constraint
    X_WB = body_poses_in_world(model, model.parameters.default_positions)
    (R_WA, p_WA), (R_WB, p_WB) = (
        (X_WB.rotation[i], X_WB.translation[i]) for i in (constraint.body_A, constraint.body_B)
    )
    p_BQ = R_WB.T @ (R_WA @ constraint.p_AP + (p_WA - p_WB))
    return eqx.tree_at(lambda c: c.p_BQ, constraint, p_BQ, is_leaf=lambda x: x is None)


def check_function(model: MultibodyModel, constraint: AbstractConstraint) -> None:
    """Raises `ModelError` unless a custom function returns as many floats as its number of rows."""
    if not isinstance(constraint, CustomConstraint):
        return
    q = model.parameters.default_positions
    coordinates = (q,) if constraint.level == "position" else (q, jnp.zeros(model.num_velocities, model.dtype))
    result = jax.eval_shape(lambda *x: evaluate(constraint, model, *x), *coordinates)
    if result.shape != (constraint.num_rows,):
        raise ModelError(
            f"{constraint.label}: the function returns shape {result.shape}, it must be ({constraint.num_rows},)."
        )
