"""A `NetworkPolicy` as a model of ONNX, for runtimes on robots and in other simulators."""

from typing import Any

import numpy as np

from mbjax.optional_packages import imported

OPSET = 17
NAMES = {"elu": "Elu", "tanh": "Tanh"}


def onnx_model(policy: Any) -> Any:
    """The model: `observation` (batch, observations) in, `action` (batch, actions) out, float32. Needs onnx."""
    onnx = imported("onnx", "NetworkPolicy.save_onnx needs onnx", "onnx")
    make, nodes, numbers = onnx.helper, [], []

    def constant(name: str, value: Any) -> str:
        numbers.append(onnx.numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def add(kind: str, output: str, *inputs: str) -> str:
        nodes.append(make.make_node(kind, list(inputs), [output]))
        return output

    def activated(kind: str, x: str, name: str) -> str:
        if kind == "clip":
            return add("Clip", name, x, constant(f"{name}_low", -1.0), constant(f"{name}_high", 1.0))
        if kind == "swish":
            return add("Mul", name, x, add("Sigmoid", f"{name}_sigmoid", x))
        return add(NAMES[kind], name, x)

    x = add("Sub", "centred", "observation", constant("mean", policy.mean))
    x = add("Div", "scaled", x, constant("spread", policy.spread))
    if np.isfinite(policy.limit):
        x = add("Clip", "limited", x, constant("lowest", -policy.limit), constant("highest", policy.limit))
    for i, (weights, biases) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        x = add("Gemm", f"layer_{i}", x, constant(f"weights_{i}", weights), constant(f"biases_{i}", biases))
        is_last = i == len(policy.weights) - 1
        x = activated(policy.last if is_last else policy.activation, x, "action" if is_last else f"activated_{i}")
    sizes = ("observation", policy.weights[0].shape[0]), ("action", policy.weights[-1].shape[1])
    given, found = (make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", n]) for name, n in sizes)
    graph = make.make_graph(nodes, "policy", [given], [found], numbers)
    # Runtimes of some years ago read version 9 of the format.
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    return model
