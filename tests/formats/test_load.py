"""`load`: what it costs, what it takes besides a path, and which options it passes on."""

import jax
import pytest

import mbjax


@pytest.fixture
def compiled():
    """Programs compiled since the test began, one entry each."""
    seen: list[str] = []

    def listener(event: str, duration_secs: float, **_: str | int) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(listener)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listener)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loading_compiles_nothing(compiled, dtype):
    """Each little program JAX makes of a conversion costs as much as reading the file."""
    mbjax.load(mbjax.reference_models.path("arm"), dtype=dtype)
    assert compiled == []
    jax.jit(lambda x: x + 1.0)(2.0).block_until_ready()
    assert compiled, "the listener hears compilations"


def test_bundled_models_by_name(tmp_path, monkeypatch):
    """Whatever the command line takes; a file of that name comes first."""
    monkeypatch.chdir(tmp_path)
    for name in mbjax.reference_models.REFERENCE_MODELS:
        plant = mbjax.MultibodyPlant()
        mbjax.Parser(plant).add_models(name)
        assert plant.instance_names[2:] == [name]
    assert mbjax.load("pendulum").joint_names == mbjax.load(mbjax.reference_models.path("pendulum")).joint_names
    (tmp_path / "arm").write_text('<robot name="mine"><link name="a"/></robot>')
    assert mbjax.load("arm", base="fixed").layout.instance_names[2:] == ("mine",)


@pytest.mark.parametrize("name", ["amr", "nothing_like_it"])
def test_a_name_that_is_none_lists_them(name):
    with pytest.raises(mbjax.ParseError, match=f"{name}: there is no such file, and no bundled model") as caught:
        mbjax.load(name)
    for bundled in mbjax.reference_models.REFERENCE_MODELS:
        assert bundled in str(caught.value)
    assert ("Did you mean 'arm'?" in str(caught.value)) == (name == "amr")


def test_the_approximation_of_contact_is_passed_on():
    model = mbjax.load("pendulum", time_step=1e-2, contact_model="point", discrete_contact_approximation="lagged")
    assert model.layout.contact.approximation == "lagged"
    assert mbjax.load("pendulum", time_step=1e-2, contact_model="point").layout.contact.approximation == "sap"
    with pytest.raises(mbjax.ModelError, match=r"discrete_contact_approximation='tamsi'.*'sap', 'similar', 'lagged'"):
        mbjax.load("pendulum", discrete_contact_approximation="tamsi")  # pyright: ignore[reportArgumentType]
