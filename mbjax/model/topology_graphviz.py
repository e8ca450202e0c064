"""Writes bodies and joints as a Graphviz graph."""

from collections.abc import Iterable, Sequence

from .lookup import Named


def topology_graphviz_string(
    instance_names: Sequence[str], bodies: Sequence[Named], joints: Iterable[tuple[str, str, int, int]]
) -> str:
    """Graph with a cluster per model instance and an edge from child to parent per joint.

    A joint is given as (name, kind, parent body, child body).
    """
    lines = ["digraph MultibodyPlant {", 'label="";', "rankdir=BT;", "labelloc=t;"]
    for instance, name in enumerate(instance_names):
        owned = [(i, body.name) for i, body in enumerate(bodies) if body.model_instance == instance]
        lines += [f"subgraph cluster{instance} {{", f" label={quoted(name)};"]
        lines += [f" body{i} [label={quoted(body)}];" for i, body in owned]
        lines.append("}")
    lines += [
        f"body{child} -> body{parent} [label={quoted(f'{name} [{kind}]')}];" for name, kind, parent, child in joints
    ]
    return "\n".join([*lines, "}", ""])


def quoted(text: str) -> str:
    """Text as a Graphviz string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
