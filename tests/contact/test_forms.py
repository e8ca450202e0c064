"""Forms of contact: which model takes which, and a form from outside that plugs in by one more row."""

import ast
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import mbjax
from mbjax.contact import AbstractContactForm, AbstractContactLaw, OtherRows, StepSoFar, find_moved_bodies
from mbjax.contact.forms import choose
from mbjax.contact.forms.choose import Target, choose_form
from mbjax.contact.laws.law_of_model import LawInputs, calc_contact_law, size_of_response
from mbjax.contact.movers.abstract_mover import AbstractMover
from mbjax.contact.movers.contact_jacobian import calc_contact_jacobian
from mbjax.contact.newton.newton_matrix import NewtonMatrix
from mbjax.contact.rows.rows_of_step import OfRows
from mbjax.dynamics import ForwardDynamicsTerms, calc_mass_matrix_product
from mbjax.geometry import Geometry, HalfSpace, Sphere
from mbjax.spatial.component_algebra import symmetric_matrix
from mbjax.topology import TreeTopology
from tests.gradients.checks import compiled
from tests.models import relative_error

from .test_crowds import crowd
from .test_listed_contacts import robot

ROOT = pathlib.Path(__file__).parent.parent.parent
ONE_ON_CPU = Target(has_kernels=True, is_one_world=True, has_world_threads=False, reads_points=False)
READ = ONE_ON_CPU._replace(reads_points=True)
SEVERAL = ONE_ON_CPU._replace(is_one_world=False)
ON_GPU = SEVERAL._replace(has_kernels=False, has_world_threads=True)


class MatrixMover(AbstractMover):
    """A Jacobian as a plain matrix."""

    J: Float[Array, "3 m nv"]

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        return self.J @ v

    def generalized(self, f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        return jnp.einsum("imn,im->n", self.J, f_Bc_W)

    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        W = jnp.einsum("imn,kmn->ikm", self.J / diagonal, self.J)
        return jnp.stack([W[0, 0], W[1, 1], W[2, 2], W[0, 1], W[0, 2], W[1, 2]])


class PlainMatrices(AbstractContactForm):
    """All points of one world, with J, M and H as plain matrices, solved as NumPy would."""

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: MatrixMover
    slots: None = None
    starts_at_rest: ClassVar[bool] = False

    @classmethod
    def at(cls, step: StepSoFar) -> Self:
        points, terms = step.all_points(), step.terms
        bodies = find_moved_bodies(step.model.topology, terms.position, points, terms.locked)
        moved = MatrixMover(calc_contact_jacobian(bodies).J)
        v_AcBc_W, w = moved.velocities(terms.v), size_of_response(moved.response(step.diagonal))
        inputs = LawInputs(points.distance, points.normal_W, points.active, points.parameters)
        return cls(v_AcBc_W, calc_contact_law(step.model, inputs, v_AcBc_W, w), moved)

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        def inertia_product(x: Array) -> Array:
            return calc_mass_matrix_product(topology, terms.position, terms.inertia_W, x) + terms.diagonal * x

        M = jax.vmap(inertia_product, out_axes=1)(jnp.eye(topology.num_velocities))

        def solver(stiffness: OfRows) -> Callable[[Array], Array]:
            assert stiffness.contacts is not None
            assert not others.exist
            G = symmetric_matrix(stiffness.contacts)
            H = M + jnp.einsum("imn,ikm,kmj->nj", self.moved.J, G, self.moved.J)
            return lambda b: jnp.linalg.solve(H, b)

        return NewtonMatrix(inertia_product, solver, lambda stiffness, b: solver(stiffness)(b))


@pytest.mark.whole_run("every form of the matrix is the derivative of the residual")
def test_another_form_is_one_more_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Velocities, forces and derivatives of a step of two balls that touch, as by the form of the table."""
    q = mbjax.default_state(balls()).q.at[jnp.array([6, 12, 13])].set(jnp.array([0.0995, 0.15, 0.18]))
    v = jnp.asarray(np.random.default_rng(3).normal(size=12))

    def after(model: mbjax.MultibodyModel, v: Array) -> tuple[Array, Array]:
        state, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))
        return state.v, outputs.contact_results.force

    def with_tangent(model: mbjax.MultibodyModel) -> Any:
        return compiled(lambda v: jax.jvp(lambda v: after(model, v), (v,), (jnp.ones_like(v),)))(v)

    expected = with_tangent(balls(max_pairs=98))
    calls = []
    row = choose.FormRow(PlainMatrices, lambda *_: calls.append("asked") is None, "all models")
    monkeypatch.setattr(choose, "FORMS", (row, *choose.FORMS))
    found = with_tangent(balls(max_pairs=99))  # traced anew
    assert calls
    assert np.count_nonzero(np.any(expected[0][1] != 0.0, axis=-1)) == 2
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert relative_error(ours, theirs) < 1e-9


def balls(count: int = 2, **settings: Any) -> mbjax.MultibodyModel:
    """Balls and the ground."""
    plant = mbjax.MultibodyPlant(2e-3, **settings)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.5)
    for k in range(count):
        plant.add_rigid_body(f"ball{k}", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.register_collision_geometry(f"ball{k}", Geometry("ball", Sphere(0.1)), 0.5)
    return plant.finalize()


def test_the_first_row_that_takes_the_model_and_the_target_is_chosen() -> None:
    bodies, trees, ball = crowd(), robot(), balls(1)
    expected = [
        (bodies, ONE_ON_CPU, "ListedBodies"),
        (bodies, READ, "ListedBodies"),
        (bodies, SEVERAL, "AllPoints"),
        (crowd(is_tied=True), ONE_ON_CPU, "ListedTrees"),
        (crowd(contact_prediction=True), ONE_ON_CPU, "ListedBodies"),
        (robot(contact_prediction=True), ONE_ON_CPU, "AllPoints"),
        (trees, ONE_ON_CPU, "ListedTrees"),
        (trees, READ, "AllPoints"),
        (trees, ON_GPU, "AllPoints"),
        (robot(max_contacts=2), ONE_ON_CPU, "DeepestPoints"),
        (robot(max_contacts=1000), SEVERAL, "AllPoints"),
        (ball, ONE_ON_CPU, "PointsOnTree"),
        (ball, SEVERAL, "PointsOnTree"),
        (ball, ON_GPU, "PointsOnDeepTree"),
    ]
    assert [choose_form(model, target).__name__ for model, target, _ in expected] == [name for *_, name in expected]


def test_the_page_has_the_table_of_today() -> None:
    script = ROOT / "docs" / "contact_forms_table.py"
    specification = importlib.util.spec_from_file_location("contact_forms_table", script)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    text = module.PAGE.read_text()
    assert module.with_table(text) == text, "run python docs/contact_forms_table.py"


def test_only_one_file_knows_the_forms() -> None:
    """Nothing but the table imports a form, and nothing else in contact asks for devices or for the kind of a form."""
    forms = {row.form.__name__ for row in choose.FORMS}
    for file in sorted((ROOT / "mbjax").rglob("*.py")):
        if file.relative_to(ROOT).as_posix() == "mbjax/contact/forms/choose.py":
            continue
        tree = ast.parse(file.read_text())
        imported = {x.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for x in node.names}
        assert not imported & forms, file
        if "mbjax/contact/" in file.as_posix():
            asked = {"traced_for"}
            assert not imported & asked, file
