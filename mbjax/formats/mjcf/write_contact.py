"""Which geoms of an MJCF file may touch, where MuJoCo would decide otherwise by itself."""

from collections.abc import Callable

from ..records.model_records import ModelRecords
from ..xml.text import Element, add
from .write_geoms import Geoms


def touch_as_in_mujoco(records: ModelRecords, collapsed: set[str]) -> Callable[[int, int], bool]:
    """MuJoCo's rule: bodies touch unless one is the other's parent, where what is welded counts as one body.

    The world is no such parent. Links in `collapsed` are no bodies in the file.
    """
    topology, names, bodies = records.model.topology, records.names, records.model.layout.bodies
    first = {mobod: body for body, mobod in reversed(list(enumerate(topology.body_mobods)))}
    passed = {mobod for mobod, body in first.items() if mobod and names.local("body", bodies[body].index) in collapsed}

    def parent(mobod: int) -> int:
        above = topology.mobod_parents[mobod]
        while above in passed:
            above = topology.mobod_parents[above]
        return above

    def may_touch(A: int, B: int) -> bool:
        a, b = topology.body_mobods[A], topology.body_mobods[B]
        return a == 0 or b == 0 or (parent(a) != b and parent(b) != a)

    return may_touch


def add_contacts(root: Element, records: ModelRecords, geoms: Geoms, collapsed: set[str]) -> None:
    """<exclude> for bodies, <pair> for shapes that touch though their bodies do not."""
    touching, names = records.touching, records.names
    exclude, include, partly = touching.differences(touch_as_in_mujoco(records, collapsed))
    if not (exclude or include or partly):
        return
    contact = add(root, "contact")
    for A, B in sorted([*exclude, *partly]):
        add(contact, "exclude", body1=names.local("body", A), body2=names.local("body", B))
    friction = {
        (names.local("body", g.body), g.name): float(records.model.collision.dynamic_friction[i])
        for i, g in enumerate(records.model.layout.contact.geometries)
    }
    for A, B in sorted([*include, *partly]):
        for a, b in touching.allowed[A, B]:
            keys = (names.local("body", A), a), (names.local("body", B), b)
            if all(key in geoms.names for key in keys):
                mu = max(friction.get(key, 1.0) for key in keys)
                numbers = {"friction": (mu, mu, 0.005, 0.0001, 0.0001), "condim": 3 if mu else 1}
                add(contact, "pair", geom1=geoms.names[keys[0]], geom2=geoms.names[keys[1]], **numbers)
