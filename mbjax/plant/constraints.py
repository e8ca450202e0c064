"""Methods of the plant for constraints, which close loops and couple joints."""

import abc
import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbjax.errors import ModelError
from mbjax.model import (
    AbstractConstraint,
    BallConstraint,
    CouplerConstraint,
    DistanceConstraint,
    MultibodyModel,
    WeldConstraint,
    resolve_constraints,
)
from mbjax.model.abstract_constraint import with_static
from mbjax.model.constraint_queries import ConstraintQueries
from mbjax.topology import TreeNode

from .default_body_poses import default_body_poses
from .queries import PlantQueries


class PlantConstraints(ConstraintQueries):
    """Methods that add constraints; each returns the constraint's name, by which it is removed, switched and queried.

    The constraints act in continuous plants and in discrete ones, whatever the solver.
    """

    constraints: list[AbstractConstraint]

    def add_constraint(self, constraint: AbstractConstraint) -> str:
        """Adds a constraint of any kind: loops, contacts, locks and functions of one's own among them."""
        self._require_building("add_constraint")
        if not isinstance(constraint, AbstractConstraint):
            raise ModelError(f"add_constraint: expected a constraint, got {type(constraint).__name__}.")
        return self._keep(constraint)

    def add_coupler_constraint(
        self, joint0: Any, joint1: Any, gear_ratio: float, offset: float = 0.0, *, name: str | None = None
    ) -> str:
        """Adds the constraint q0 = gear_ratio q1 + offset between two joints with one degree of freedom."""
        self._require_building("add_coupler_constraint")
        return self._keep(self._checked(CouplerConstraint(joint0, joint1, gear_ratio, offset, name=name)))

    def add_distance_constraint(
        self,
        body_A: Any,
        p_AP: Any,
        body_B: Any,
        p_BQ: Any,
        distance: float,
        stiffness: float = float("inf"),
        damping: float = 0.0,
        *,
        name: str | None = None,
    ) -> str:
        """Keeps points P of body A and Q of body B `distance` (m) apart; by a spring with a finite stiffness (N/m)."""
        self._require_building("add_distance_constraint")
        record = DistanceConstraint(body_A, p_AP, body_B, p_BQ, distance, stiffness, damping, name=name)
        return self._keep(self._checked(record))

    def add_ball_constraint(
        self, body_A: Any, p_AP: Any, body_B: Any, p_BQ: Any = None, *, name: str | None = None
    ) -> str:
        """Keeps point Q of body B at point P of body A; without `p_BQ`, Q is where P is by default at finalize."""
        self._require_building("add_ball_constraint")
        return self._keep(self._checked(BallConstraint(body_A, p_AP, body_B, p_BQ, name=name)))

    def add_weld_constraint(self, body_A: Any, X_AP: Any, body_B: Any, X_BQ: Any, *, name: str | None = None) -> str:
        """Keeps frame Q of body B at frame P of body A."""
        self._require_building("add_weld_constraint")
        return self._keep(self._checked(WeldConstraint(body_A, X_AP, body_B, X_BQ, name=name)))

    def remove_constraint(self, constraint: str | int) -> None:
        """Removes a constraint, given by name or place."""
        self._require_building("remove_constraint")
        del self.constraints[self.constraint_index(constraint)]

    def _checked(self, record: AbstractConstraint) -> AbstractConstraint:
        """Returns the record; raises `ModelError` unless the plant has the elements it connects."""
        record.resolve(self)
        return record

    def _keep(self, record: AbstractConstraint) -> str:
        """Keeps a record, naming an unnamed one after its kind; returns its name."""
        taken = self.constraint_names
        if record.name is None:
            kind = type(record).__name__.removesuffix("Constraint").lower()
            numbers = (f"{kind}_{k}" for k in range(len(taken) + 1))
            record = with_static(record, name=next(name for name in numbers if name not in taken))
        elif record.name in taken:
            raise ModelError(f"{record.label}: the plant has a constraint of that name already; choose another.")
        self.constraints.append(record)
        return str(record.name)

    @abc.abstractmethod
    def _require_building(self, call: str) -> None: ...


def with_constraints(plant: PlantQueries, model: MultibodyModel, nodes: list[TreeNode]) -> MultibodyModel:
    """The model with the plant's constraints: references resolved, balls without a second point completed."""
    records = list(plant.constraints)
    if any(isinstance(record, BallConstraint) and record.p_BQ is None for record in records):
        X_WB = default_body_poses(plant, nodes)
        records = [place_ball(model, X_WB, record) for record in records]
    return dataclasses.replace(model, constraints=resolve_constraints(records, model, model.dtype))


def place_ball(model: MultibodyModel, X_WB: dict[int, np.ndarray], record: AbstractConstraint) -> AbstractConstraint:
    """Completes a ball constraint with Q where P is in the default configuration: p_BQ = X_BW X_WA p_AP."""
    if not isinstance(record, BallConstraint) or record.p_BQ is not None:
        return record
    found = record.resolve(model)
    p_BQ = np.linalg.inv(X_WB[found.body_B]) @ X_WB[found.body_A] @ np.append(record.p_AP, 1.0)
    return with_static(record, p_BQ=jnp.asarray(p_BQ[:3], model.dtype))
