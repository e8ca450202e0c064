"""The solution of one world's step from the list of its contacts that act, on a CPU in one kernel."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.execution import in_one_kernel, on_cpu
from mbjax.model import MultibodyModel

from .contact_points import calc_contact_points
from .contact_rows import calc_contact_rows
from .convex_problem import ConvexProblem
from .convex_search import ConvexSearch, ConvexSolution, search, search_all
from .convex_solver import solution_with_rule
from .listed_rows import calc_listed_rows


def calc_listed_solution(model: MultibodyModel, whole: ConvexProblem) -> tuple[ConvexSolution, ConvexSearch]:
    """The solution of a problem with all of the model's contacts, found from those that act, with derivatives of vdot.

    The second result has the shapes of a search, but no numbers: nobody resumes the search of one world.
    """
    problem = dataclasses.replace(whole, contacts=None)
    shapes = eqx.filter_eval_shape(search, model.topology, whole)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    arrays, static = eqx.partition(lax.stop_gradient((model, problem)), eqx.is_array)

    def by_list(arrays: tuple) -> ConvexSolution:
        model, problem = eqx.combine(arrays, static)
        terms = problem.terms
        diagonal, is_coupled = calc_diagonal(model, problem), problem.coupled is not None
        of_list = calc_listed_rows(model, terms.position, terms.v, diagonal, terms.locked, is_coupled)
        return search_all(model.topology, dataclasses.replace(problem, contacts=of_list)).solution()

    def by_points(arrays: tuple) -> ConvexSolution:
        model, problem = eqx.combine(arrays, static)
        return search(model.topology, with_contacts(model, problem)).solution()

    found = on_cpu(lambda arrays: in_one_kernel(by_list, arrays), by_points, arrays)
    return found._replace(vdot=with_rule(model, problem, found.vdot)), nothing


def calc_diagonal(model: MultibodyModel, problem: ConvexProblem) -> Float[Array, " nv"]:
    """The diagonal of M with implicit dissipation, which estimates how bodies respond to a contact."""
    return calc_mass_matrix_diagonal(problem.terms.motion, problem.terms.diagonal)


def with_contacts(model: MultibodyModel, problem: ConvexProblem) -> ConvexProblem:
    """The problem with the contacts of all pairs."""
    terms = problem.terms
    points = calc_contact_points(model, terms.position)
    diagonal = calc_diagonal(model, problem)
    rows = calc_contact_rows(model, points, terms.position, terms.v, diagonal, terms.locked)
    return dataclasses.replace(problem, contacts=rows)


@eqx.filter_custom_jvp
def with_rule(model: MultibodyModel, problem: ConvexProblem, vdot: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Returns vdot unchanged; its derivative is that of the problem with all contacts, made only where it is wanted."""
    return vdot


@with_rule.def_jvp
def _with_rule_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, problem, vdot = primals
    vdot = with_rule(model, problem, vdot)  # needed for second derivatives

    def of_all(model: MultibodyModel, problem: ConvexProblem) -> Array:
        return solution_with_rule(model.topology, with_contacts(model, problem), vdot)

    return vdot, eqx.filter_jvp(of_all, (model, problem), tangents[:2])[1]
