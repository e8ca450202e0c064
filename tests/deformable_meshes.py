"""Meshes of tetrahedra for tests: boxes of cells, each cut into six elements."""

import itertools
from typing import Any

import numpy as np


def box_mesh(cells: tuple[int, int, int], size: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Points and tetrahedra of a box with a corner at the origin; six elements a cell, around its diagonal."""
    numbers = np.arange(np.prod([n + 1 for n in cells])).reshape([n + 1 for n in cells])
    axes = [np.linspace(0.0, length, n + 1) for length, n in zip(size, cells, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    tetrahedra = []
    for corner in itertools.product(*map(range, cells)):
        for order in itertools.permutations(range(3)):
            path = [np.array(corner)]
            for axis in order:
                path.append(path[-1] + np.eye(3, dtype=int)[axis])
            nodes = [int(numbers[tuple(p)]) for p in path]
            if np.linalg.det(points[nodes[1:]] - points[nodes[0]]) < 0.0:
                nodes[1], nodes[2] = nodes[2], nodes[1]
            tetrahedra.append(nodes)
    return points, np.array(tetrahedra)


def held_bar(
    material: Any,
    cells: tuple[int, int, int] = (2, 1, 1),
    time_step: float = 5e-3,
    elements: str = "linear",
    **more: Any,
) -> Any:
    """A plant with a bar of 0.02 m cells along x, held at its end x = 0; `more` for its constructor."""
    import mbjax

    plant = mbjax.MultibodyPlant(time_step, **more)
    points, tetrahedra = box_mesh(cells, tuple(0.02 * n for n in cells))  # pyright: ignore[reportArgumentType]
    plant.add_deformable_body("bar", (points, tetrahedra), material, elements=elements)
    plant.set_wall_boundary_condition("bar", [1e-6, 0.0, 0.0], [1.0, 0.0, 0.0])
    return plant
