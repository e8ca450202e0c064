"""Plans that make and break contact: solved with smoothed contact, which is then made sharp."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import set_contact_smoothing_length
from mbjax.progress import telling

from .abstract_solver import AbstractSolver
from .problem import Problem
from .solution import Solution
from .solve import solve

SMOOTHING_LENGTHS = 0.03, 0.01, 0.003, 0.001, 0.0  # m


def solve_through_contact(
    problem: Problem,
    guess: Any = None,
    solver: AbstractSolver | None = None,
    *,
    smoothing_lengths: Sequence[float] = SMOOTHING_LENGTHS,
    progress: bool | None = None,
) -> Solution:
    """Solves the problem at each of the model's `contact_smoothing_length`s, in m, from the plan of the one before.

    With a long one surfaces push each other from a distance, so that a search sees contacts that it has not made yet.
    The last one, zero by default, is the contact that the plan is for. All take one compiled program, and `jit`, `vmap`
    and `grad` go through, as in `solve`. The model must have a smoothing length to set, so it takes a plant with
    contact_smoothing_length=0.01 and discrete_contact_approximation="similar", say. Only the last search warns if it
    does not converge. `progress` is as in `solve`.
    """
    if problem.model is None or not len(smoothing_lengths):
        raise ModelError("solve_through_contact: give a problem with a model, and at least one smoothing length.")
    with telling("solve_through_contact", progress) as teller:
        for k, length in enumerate(smoothing_lengths):
            teller.say(f"smoothing length {k + 1} of {len(smoothing_lengths)}")
            sharper = set_contact_smoothing_length(problem.model, length)
            with warnings.catch_warnings():
                if k + 1 < len(smoothing_lengths):
                    warnings.simplefilter("ignore", ModelWarning)
                guess = solve(eqx.tree_at(lambda p: p.model, problem, sharper), guess, solver)
    return dataclasses.replace(guess, report=dataclasses.replace(guess.report, is_through_sharp_contact=False))
