"""Worlds of an environment on eight devices, and on two processes of four: bit-equal to those of one device.

The processes go on from a checkpoint halfway, which both write and read.
"""

import os
import pathlib
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

PROGRAM = """
    import sys, jax, jax.numpy as jnp, numpy as np, mbjax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec
    from mbjax.environments import CartPoleSwingUp, Episodes, restore_checkpoint, save_checkpoint

    processes, port, place, file = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    if processes > 1:
        jax.distributed.initialize(f"localhost:{port}", processes, place)
    episodes = Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), 4)
    reset, step = jax.jit(jax.vmap(episodes.reset)), jax.jit(jax.vmap(episodes.step))

    def run(devices):
        mesh = jax.make_mesh((len(devices),), ("worlds",), axis_types=(AxisType.Auto,), devices=devices)
        share = NamedSharding(mesh, PartitionSpec("worlds"))

        def put(x):
            return jax.make_array_from_callback(x.shape, share, lambda rows: x[rows])

        def draw(i):
            return np.random.default_rng(i).uniform(-1.0, 1.0, (32, 1)).astype(np.float32)

        words = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), 32)))
        first = states = reset(jax.jit(jax.random.wrap_key_data)(put(words)))
        for i in range(6):
            if processes > 1 and i == 3:  # as if all had been killed here
                save_checkpoint(sys.argv[5], i, states)
                _, states = restore_checkpoint(sys.argv[5], first)
            states = step(states, put(draw(i)))
        assert states.env.observation.sharding.is_equivalent_to(share, 2)
        return {
            f"{name}_{shard.index[0].start or 0}": np.asarray(shard.data)
            for name, x in (("q", states.env.physics.q), ("v", states.env.physics.v), ("r", states.env.reward))
            for shard in x.addressable_shards
        }

    np.savez(file, **run(jax.devices()))
    if processes == 1:
        np.savez(file.replace(".npz", "_one.npz"), **run(jax.devices()[:1]))
"""


def start(devices: int, processes: int, port: int, place: int, file: pathlib.Path) -> subprocess.Popen:
    """A process with this many devices, which writes its worlds to the file."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    arguments = [str(processes), str(port), str(place), str(file), str(file.parent / "checkpoints")]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), *arguments],
        env=os.environ | {"XLA_FLAGS": flags},
        stderr=subprocess.PIPE,
        text=True,
    )


Worlds = dict[str, np.ndarray]  # positions, velocities and rewards


def worlds_of(devices: int, processes: int, folder: pathlib.Path) -> tuple[Worlds, Worlds | None]:
    """Of all devices, and of the first alone if there is one process."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    files = [folder / f"{devices}_{place}.npz" for place in range(processes)]
    running = [start(devices, processes, port, place, file) for place, file in enumerate(files)]
    for process in running:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    return read(files), read([folder / f"{devices}_0_one.npz"]) if processes == 1 else None


def read(files: list[pathlib.Path]) -> Worlds:
    """The parts that processes and devices wrote, in order."""
    parts = {name: x for file in files for name, x in np.load(file).items()}
    order = sorted(parts, key=lambda name: (name[0], int(name[2:])))
    return {kind: np.concatenate([parts[name] for name in order if name[0] == kind]) for kind in "qvr"}


@pytest.mark.whole_run("worlds shared out among devices in test_shard_map.py and test_sharded_worlds.py")
@pytest.mark.parametrize(("devices", "processes"), [(8, 1), (4, 2)])
def test_worlds_are_bit_equal_to_those_of_one_device(tmp_path: pathlib.Path, devices: int, processes: int) -> None:
    found, of_one_device = worlds_of(devices, processes, tmp_path)
    for kind, expected in (of_one_device or worlds_of(1, 1, tmp_path)[0]).items():
        assert expected.shape[0] == 32
        np.testing.assert_array_equal(found[kind], expected)
