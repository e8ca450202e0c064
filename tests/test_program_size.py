"""The program does not grow with the robot, and neither derivatives nor values leave the device."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from benchmarks.figures import build_mbjax, humanoid
from mbjax.execution.worlds.chunks import CHUNK
from tests.xla_options import SAME_KERNELS

# Of many worlds: kernels that XLA starts a chunk, and fused operations in all, those within kernels included. Measured
# with jax 0.10.2: 26 and 224, 44 and 461, 17 and 146. The gradient's rows are written number by number, 59 operations
# more, which take a twentieth less time than to put them together first.
KERNELS = {"forward dynamics": (25, 204), "its gradient": (46, 398), "mass matrix": (17, 126)}
SORTED = int(jax.__version_info__ >= (0, 12))  # and one more, of the number that keeps the loop over chunks a loop
SLOW_SUMS = {"mass matrix": 2, "reverse mode of forward dynamics": 6}  # else 4

STEP, ROLLOUT_GRADIENT = 8650, 20700  # operations of a humanoid on the ground; measured: 8431 and 20277


def chain(length: int) -> mbjax.MultibodyModel:
    """Links on axes of changing direction."""
    plant = mbjax.MultibodyPlant(0.01)
    parent = "world"
    for i in range(length):
        plant.add_rigid_body(f"link{i}", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
        axis = [[1, 0, 0], [0, 1, 0], [0, 0, 1]][i % 3]
        plant.add_joint(mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", X_PF=[0.0, 0.0, 0.3], axis=axis))
        parent = f"link{i}"
    return plant.finalize()


def count_operations(program: str) -> int:
    """Operations JAX hands to XLA, less those of functions that nothing calls."""
    functions = re.split(r"(?=func\.func )", program)
    names = [re.match(r"func\.func private @(\w+)\(", x) for x in functions]
    called = set(re.findall(r"call @(\w+)\(", program))
    used = [x for x, name in zip(functions, names, strict=True) if name is None or name.group(1) in called]
    return sum(x.count(" = stablehlo.") for x in used)


@functools.cache
def lowered(name: str, length: int) -> jax.stages.Lowered:
    """A function for a chain, in which its model is known."""
    model, x = chain(length), jnp.ones(length)
    return jax.jit(lambda q, v: FUNCTIONS[name](model, q, v)).lower(x, x)


def lower(name: str, length: int) -> str:
    """The program of a function for a chain, as JAX hands it to XLA."""
    return lowered(name, length).as_text()


FUNCTIONS = {
    "forward dynamics": lambda m, q, v: mbjax.forward_dynamics(m, q, v, v),
    "inverse dynamics": lambda m, q, v: mbjax.inverse_dynamics(m, q, v, v),
    "mass matrix": lambda m, q, v: mbjax.mass_matrix(m, q),
    "step": lambda m, q, v: mbjax.step(m, mbjax.State(q, v, jnp.zeros(())))[0].q,
    "reverse mode of forward dynamics": lambda m, q, v: jax.grad(
        lambda q, v: jnp.sum(mbjax.forward_dynamics(m, q, v, v)), (0, 1)
    )(q, v),
}


CALLS = {name: FUNCTIONS[name] for name in ("forward dynamics", "inverse dynamics", "mass matrix")} | {
    "poses": lambda m, q, v: mbjax.body_poses_in_world(m, q).translation,
    "bias": lambda m, q, v: mbjax.bias_term(m, q, v),
    "accelerations": lambda m, q, v: mbjax.time_derivatives(m, mbjax.State(q, v, jnp.zeros((), q.dtype)))[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations_do_not_grow_with_the_robot(name: str) -> None:
    sizes = [count_operations(lower(name, length)) for length in (7, 60)]
    # A few operations more or less: constant indices in many runs are gathered, in few runs sliced.
    assert max(sizes) <= 1.02 * min(sizes)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_slow_operations(name: str) -> None:
    """Sums over the few components of a vector are written out, also in reverse mode; nothing is scattered.

    XLA's CPU backend takes ten times longer for reductions over short axes. Those allowed make axes of unit length: two
    for records, and two for each recursion that finds poses by itself. To solve along a path takes sums of whole rows.
    """
    program = lower(name, 20)
    sums = re.findall(r"stablehlo\.reduce\(.* across dimensions = (\[.*\] : \(tensor<[^>]*>)", program)
    slow = [x for x in sums if not x.startswith("[0] : (tensor<20xf64>")]
    assert len(slow) <= SLOW_SUMS.get(name, 4), slow
    assert "stablehlo.scatter" not in program


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_world_is_one_kernel(name: str) -> None:
    """Of a CPU, whatever the robot: for one world to start kernels takes longer than what they compute."""
    entry = lowered(name, 20).compile(SAME_KERNELS).as_text().split("\nENTRY ")[1]
    assert " while(" not in entry
    assert len(re.findall(r" (?:fusion|dot|copy|custom-call|scatter|gather|call)\(", entry)) <= 12


@pytest.mark.parametrize("name", CALLS)
def test_one_world_is_computed_where_it_is_called(name: str, request: pytest.FixtureRequest) -> None:
    """XLA does so of fewer than 1000 operations, with one turn of each loop; others another thread computes.

    To wake that takes several times as long as dynamics of one world. Measured with jax 0.10.2: 165 (poses of the
    chain) to 920 (accelerations of the quadruped). A G1 has 36 more than the quadruped, and 26 more again in a process
    in single precision: so there may be no more than 930 here. Joints without an axis add to it: a robot with several
    floating bodies, or with ball joints, has more than 1000. Whole run: of four robots.
    """
    robots = {name: mbjax.load(mbjax.reference_models.path(name)) for name in ("arm", "quadruped")}
    robots["in single precision"] = mbjax.astype(robots["quadruped"], jnp.float32)
    robots["chain"] = chain(60)
    if request.config.getoption("--trimmed"):
        robots = {"quadruped": robots["quadruped"]}  # which has the most
    for robot, model in robots.items():
        q, v = mbjax.default_positions(model), jnp.ones(model.num_velocities, model.dtype)
        compiled = jax.jit(functools.partial(CALLS[name], model)).lower(q, v).compile(SAME_KERNELS)
        assert compiled.cost_analysis()["flops"] < 930, robot


@pytest.mark.whole_run("one world is one kernel, and operations do not grow with the robot, above")
def test_kernels_of_many_worlds() -> None:
    """Few kernels: what forward dynamics and its gradient take for a batch, whatever the robot."""
    worlds = 4 * CHUNK - 8  # the last chunk overlaps the one before
    model, x = chain(20), jnp.ones((worlds, 20))

    def gradient(q, v, tau, weights):
        return jax.vjp(lambda *x: mbjax.forward_dynamics(model, *x), q, v, tau)[1](weights)

    functions = {name: functools.partial(FUNCTIONS[name], model) for name in ("forward dynamics", "mass matrix")}
    for name, function in (functions | {"its gradient": gradient}).items():
        arguments = [x] * (4 if function is gradient else 2)
        program = jax.jit(jax.vmap(function)).lower(*arguments).compile(SAME_KERNELS).as_text()
        started, fused = count_kernels(program)
        assert (started <= KERNELS[name][0] + SORTED, fused <= KERNELS[name][1]) == (True, True), (name, started, fused)
        assert arithmetic_at_an_index(program) == []
        assert copies_in_loops(program, worlds) == []


@pytest.mark.whole_run("recursions of worlds are kernels, in tests/dynamics/test_recursions.py")
def test_recursions_are_kernels_where_each_world_has_its_model(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """As many as where all worlds share one: what is computed from the model is not in them, nor its transposition.

    Trimmed: the mass matrix, and the gradient by the model, whose recursions are those of forward dynamics too.
    """
    monkeypatch.setattr("mbjax.execution.worlds.transposition.FEWEST", 10**9)
    model, x = chain(30), jnp.ones((128, 30))  # sums over the axes of its joints would be calls of a library
    models = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (128, *leaf.shape)), model)

    def by_model(m, q, v):
        return jax.grad(lambda m: jnp.sum(mbjax.forward_dynamics(m, q, v, v)))(m)

    functions = FUNCTIONS | {"gradient by the model": by_model}
    trimmed = {"mass matrix", "gradient by the model"}
    for name in trimmed if request.config.getoption("--trimmed") else functions.keys() - {"step"}:
        function = functions[name]
        own = jax.jit(jax.vmap(function)).lower(models, x, x).as_text()
        shared = jax.jit(jax.vmap(functools.partial(function, model))).lower(x, x).as_text()
        kernels = [program.count("xla_cpu_small_call") for program in (own, shared)]
        assert kernels[0] == kernels[1], (name, kernels)


def count_kernels(program: str) -> tuple[int, int]:
    """How many kernels XLA starts, and how many there would be of what is within single kernels too."""
    found = re.finditer(r"^(?:ENTRY )?%?([\w.\-]+) \(.*?\{\n.*?^\}", program, re.MULTILINE | re.DOTALL)
    computations = {match.group(1): match.group(0) for match in found}
    marked = re.compile(r'to_apply=%([\w.\-]+), frontend_attributes=\{[^}]*xla_cpu_small_call="true"')
    pending, inside = marked.findall(program), set()
    while pending:
        name = pending.pop()
        if name not in inside:
            inside.add(name)
            pending += re.findall(r"(?:to_apply|body|condition|calls)=%([\w.\-]+)", computations[name])
    kernel = re.compile(r" (?:fusion|dot|copy|custom-call|scatter|gather)\(")
    inside |= set(re.findall(r"calls=%([\w.\-]+)", program))  # fused
    outside = "".join(text for name, text in computations.items() if name not in inside)
    # XLA of JAX 0.12 marks loops within kernels, too
    return len(marked.findall(outside)) + len(kernel.findall(outside)), len(kernel.findall(program))


def copies_in_loops(program: str, worlds: int) -> list[str]:
    """Arrays of all worlds, or of a chunk, that every turn of a loop copies: XLA was not told what comes first.

    What waits for its children was copied twice a step in the mass matrix, half of the time of its pass inward.
    """
    bodies = set(re.findall(r"body=%([\w.\-]+)", program))
    found = re.finditer(r"^%?([\w.\-]+) \(.*?\{\n.*?^\}", program, re.MULTILINE | re.DOTALL)
    texts = [match.group(0) for match in found if match.group(1) in bodies]
    assert texts
    assert f",{CHUNK}]" in program
    of_many = re.compile(rf" = (f\d+\[(?:[\d,]+,\d+,{CHUNK}|{worlds},[\d,]+)\])\S* copy\(")
    return [x for text in texts for x in of_many.findall(text)]


def arithmetic_at_an_index(program: str) -> list[str]:
    """Multiplications and more in loops of several results that read at a loop's index: they have no vectors.

    Of those results LLVM is not told that what they write and what the index stands in are apart; of one result it is.
    Before steps of loops were `compiled_apart`, forward dynamics had 113 of them.
    """
    kernels = re.findall(r"\n%?fused_computation[\w.]* .*?\n}", program, re.DOTALL)
    of_several = [kernel for kernel in kernels if re.search(r"ROOT \S+ = \(.* reduce\(", kernel)]
    assert of_several
    at_an_index = [kernel for kernel in of_several if " dynamic-" in kernel]
    of_floats = re.compile(r" = f\d\S* (multiply|divide|sine|cosine|sqrt)\(")
    return [op for kernel in at_an_index for op in of_floats.findall(kernel)]


@pytest.mark.whole_run("operations of steps without contact do not grow with the robot")
def test_operations_of_a_step_with_contact() -> None:
    """Of a humanoid on the ground and of the gradient of its rollout: compiling takes a time per operation."""
    parts = humanoid()
    model = build_mbjax(parts, np.float32, "sap")
    state = mbjax.default_state(model)

    def stepped(q):
        return mbjax.step(model, mbjax.State(q, state.v, state.time))[0].v

    def cost(actuation):
        return jnp.sum(mbjax.rollout(model, state, actuation).final_state.q ** 2)

    actuation = jnp.zeros((10, model.num_actuators), jnp.float32)
    for function, argument, most in ((stepped, state.q, STEP), (jax.grad(cost), actuation, ROLLOUT_GRADIENT)):
        assert count_operations(jax.jit(function).lower(argument).as_text()) <= most


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_programs_lower_for_accelerators(platform: str) -> None:
    """Nothing in them is of a CPU only, as LAPACK is; whether they run there is for a machine that has one."""
    model, x = mbjax.astype(chain(7), jnp.float32), jnp.ones((64, 7), jnp.float32)

    def gradient(q, v, tau):
        return jax.grad(lambda *x: jnp.sum(mbjax.forward_dynamics(model, *x)), (0, 1, 2))(q, v, tau)

    program = jax.jit(jax.vmap(gradient)).trace(x, x, x).lower(lowering_platforms=(platform,)).as_text()
    assert "custom_call" not in program


def test_no_callbacks_to_the_host() -> None:
    model = chain(7)
    program = str(jax.make_jaxpr(lambda s: mbjax.step(model, s))(mbjax.default_state(model)))
    assert "callback" not in program
