"""A network of matrix products in ONNX Runtime: its ROCm provider beside its CPU provider."""

from functools import partial

import numpy as np
import onnxruntime
from beside import beside
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
weights = [numpy_helper.from_array((0.2 * random.standard_normal(shape)).astype(np.float32), name)
           for name, shape in (("first", (48, 32)), ("second", (32, 8)))]
nodes = [helper.make_node("MatMul", ["x", "first"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("MatMul", ["r", "second"], ["o"]), helper.make_node("Softmax", ["o"], ["y"], axis=-1)]
graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 48])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 8])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
inputs = {"x": random.standard_normal((64, 48)).astype(np.float32)}


def result(provider):
    session = onnxruntime.InferenceSession(model, providers=[provider])
    assert session.get_providers()[0] == provider
    return session.run(None, inputs)[0]


here, there = beside(*(partial(result, f"{name}ExecutionProvider") for name in ("ROCM", "CPU")))
print(f"greatest difference {np.abs(here - there).max():.1e}")
assert np.allclose(here, there, atol=1e-6)
print("PASSED")
