"""Counts the numbers of a model that break a rule, also where they are traced or differ between worlds."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from mbjax.execution import compiled_outside_jit

from .multibody_model import MultibodyModel
from .number_findings import find_numbers


class ModelStatus(eqx.Module):
    """Counts of rows of a model's leaves that break each rule, all zero where `is_valid`; under `vmap` for each world.

    `not_finite`: NaN, or infinite where the leaf may not be. `negative_masses`. `impossible_inertias`: not physical
    about the centre of mass. `zero_directions`: quaternions and axes of zeros. `wrong_signs`: damping,
    friction, effort limits, gains, rotor inertias, sizes, stiffness and others below what they must be.
    `crossed_limits`: lower above upper, or dynamic above static friction. `time_step`: not positive in a discrete
    model, not zero in a continuous one. `meshes_inside_out`: sizes that hydroelastic meshes do not fit.
    """

    not_finite: Int[Array, ""]
    negative_masses: Int[Array, ""]
    impossible_inertias: Int[Array, ""]
    zero_directions: Int[Array, ""]
    wrong_signs: Int[Array, ""]
    crossed_limits: Int[Array, ""]
    time_step: Int[Array, ""]
    meshes_inside_out: Int[Array, ""]

    @property
    def is_valid(self) -> Bool[Array, "..."]:
        """Whether no rule is broken."""
        counts = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return jnp.sum(jnp.stack(counts), axis=0) == 0


@compiled_outside_jit
def model_status(model: MultibodyModel) -> ModelStatus:
    """Counts the numbers of one model that break a rule, for `jit` and `vmap`; `diagnose` says which, in words.

    Setters check numbers that are known. Numbers that are traced, or changed otherwise, pass unchecked: call this where
    a sampler or an optimizer made them.
    """
    counts = {field.name: jnp.zeros((), jnp.int32) for field in dataclasses.fields(ModelStatus)}
    for finding in find_numbers(model):
        counts[finding.counted_as] += jnp.sum(finding.is_bad, dtype=jnp.int32)
    return ModelStatus(**counts)
