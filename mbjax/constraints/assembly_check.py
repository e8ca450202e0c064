"""Checks whether a state satisfies the constraints, and names those that it violates."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from mbjax.array_types import Positions, Velocities
from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.model import MultibodyModel
from mbjax.number_rules import NOT_NEGATIVE, checked_numbers

from .assembly_problem import rows_with_position
from .bound_constraint_set import BoundConstraintSet
from .constraint_quantities import constraint_terms


@takes_model_first
def check_constraints(
    model: MultibodyModel,
    cset: BoundConstraintSet,
    q: Positions,
    v: Velocities | None = None,
    tolerance: float = 1e-6,
) -> None:
    """Raises `ModelError` if a constraint's position error, or its rate with v, exceeds `tolerance` (m, rad; per s).

    It is meant for the start of a simulation, outside of compiled functions. Inactive constraints are not checked.
    """
    if any(isinstance(x, Tracer) for x in jax.tree.leaves((model, cset, q, v))):
        raise ModelError("check_constraints: call it outside of jit, grad and vmap, with plain numbers.")
    checked_numbers("check_constraints", "tolerance", tolerance, NOT_NEGATIVE)
    terms = constraint_terms(model, cset, q, jnp.zeros(model.num_velocities) if v is None else v)
    active, have_position = np.asarray(terms.active), rows_with_position(cset)
    found = []
    for name in cset.names:
        rows = cset.rows_of(name)
        for what, values, unit in (
            ("position error", np.where(have_position, terms.error, 0.0), ""),
            ("velocity error", terms.velocity_error, " per s"),
        ):
            largest = np.max(np.abs(active * np.asarray(values))[rows], initial=0.0)
            if not largest <= tolerance:
                found.append(f"'{name}': {what} {largest:.3g} (m or rad{unit})")
    if found:
        raise ModelError(
            f"check_constraints: the state does not satisfy {len(found)} condition(s) to {tolerance:g}: "
            f"{'; '.join(found)}. Start from assembly_q and assembly_qdot."
        )
