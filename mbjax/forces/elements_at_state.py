"""Recognizes forces that `force_elements_contribution` computed for the very state at which they act.

Drake's idiom, `forward_dynamics(model, q, v, tau, forces=force_elements_contribution(model, q, v))`, asks for what
`force_elements=True` finds on its way. Models, JAX arrays and the values of a traced program never change: forces that
were computed from these same objects are the forces of this state, and need not be read. The state is remembered beside
the leaves of `MultibodyForces`, so whatever changes or copies a leaf forgets it, as do `jit`, `vmap` and loops.
"""

from typing import Any

import jax

from .multibody_forces import MultibodyForces

NAME = "_elements_at"  # no field of the class: not a leaf, and not part of the tree's structure


def remember_state(forces: MultibodyForces, *state: Any) -> MultibodyForces:
    """Notes in `forces` that they are those of all force elements at `state`, a model with its q and v."""
    if all(isinstance(x, jax.Array) for x in state[1:]):  # lists and NumPy's arrays can change in place
        object.__setattr__(forces, NAME, state)
    return forces


def are_elements_at(forces: MultibodyForces | None, *state: Any) -> bool:
    """Whether `forces` are noted to be those of all force elements at `state`: the same objects, not equal ones."""
    noted = getattr(forces, NAME, ())
    return len(noted) == len(state) and all(x is y for x, y in zip(noted, state, strict=True))
