"""Queries of constraints, for a plant while it is built and for a finished model alike."""

from collections.abc import Sequence
from typing import TypeVar

from .abstract_constraint import AbstractConstraint, unknown_constraint
from .constraint_records import BallConstraint, CouplerConstraint, DistanceConstraint, WeldConstraint
from .lookup import checked_index

Kind = TypeVar("Kind", bound=AbstractConstraint)


class ConstraintQueries:
    """Queries of constraints by name, which is their identity, or by place in `constraint_names`."""

    constraints: Sequence[AbstractConstraint]

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of constraints in the order of their rows; Drake calls them identifiers."""
        return tuple(str(c.name) for c in self.constraints)

    @property
    def num_constraints(self) -> int:
        return len(self.constraints)

    @property
    def num_coupler_constraints(self) -> int:
        return len(self.coupler_constraint_specs())

    @property
    def num_distance_constraints(self) -> int:
        return len(self.distance_constraint_specs())

    @property
    def num_ball_constraints(self) -> int:
        return len(self.ball_constraint_specs())

    @property
    def num_weld_constraints(self) -> int:
        return len(self.weld_constraint_specs())

    def constraint(self, constraint: str | int) -> AbstractConstraint:
        """Record of one constraint: the elements it connects, and its numbers."""
        return self.constraints[self.constraint_index(constraint)]

    def constraint_index(self, constraint: str | int) -> int:
        """Place of a constraint by name; a place is checked and returned."""
        names = self.constraint_names
        if not isinstance(constraint, str):
            return checked_index("constraint", constraint, len(names))
        if constraint not in names:
            raise unknown_constraint(constraint, names)
        return names.index(constraint)

    def coupler_constraint_specs(self) -> dict[str, CouplerConstraint]:
        """Records of all coupler constraints by name."""
        return self._of_kind(CouplerConstraint)

    def distance_constraint_specs(self) -> dict[str, DistanceConstraint]:
        """Records of all distance constraints by name."""
        return self._of_kind(DistanceConstraint)

    def ball_constraint_specs(self) -> dict[str, BallConstraint]:
        """Records of all ball constraints by name."""
        return self._of_kind(BallConstraint)

    def weld_constraint_specs(self) -> dict[str, WeldConstraint]:
        """Records of all weld constraints by name."""
        return self._of_kind(WeldConstraint)

    def _of_kind(self, kind: type[Kind]) -> dict[str, Kind]:
        return {str(c.name): c for c in self.constraints if isinstance(c, kind)}
