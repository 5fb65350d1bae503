"""tc-emit as a backend of ONNX (`onnx.backend.base`): its test runner, or whoever speaks that interface, can run it.

    import onnx.backend.test, tc_emit.onnx_backend
    tests = onnx.backend.test.BackendTest(tc_emit.onnx_backend.TcEmitBackend, __name__).test_cases
"""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from . import _api
from ._errors import RunError


class TcEmitBackendRep(BackendRep):
    """A model that waits for inputs. Sizes that the model leaves open are bound by those of the first inputs that come; other sizes
    are compiled again. An input or output that is a sequence is a list of arrays."""

    def __init__(self, model: onnx.ModelProto, options: dict[str, Any]) -> None:
        self._bytes = model.SerializeToString()
        self._options = options
        initializers = {t.name for t in model.graph.initializer}
        self._inputs = [i.name for i in model.graph.input if i.name not in initializers]
        self._outputs = [(o.name, o.type.WhichOneof("value")) for o in model.graph.output]
        self._compiled: dict[Any, Any] = {}

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> Any:
        """inputs: in the order of the model; or a mapping, or one array. Returns a named tuple of arrays, as backends do."""
        if isinstance(inputs, dict):
            inputs = [inputs[name] for name in self._inputs]
        elif isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if len(inputs) > len(self._inputs):
            raise RunError(f"the model has {len(self._inputs)} inputs, not {len(inputs)}")
        shapes, elements, feed = {}, {}, {}
        for name, value in zip(self._inputs, inputs):
            if value is None:
                elements[name] = None
            elif isinstance(value, (list, tuple)):
                elements[name] = [np.shape(v) for v in value]
                feed.update({f"{name}_{k}": np.asarray(v) for k, v in enumerate(value)})
            else:
                feed[name] = np.asarray(value)
                shapes[name] = feed[name].shape
        key = repr((shapes, elements))
        if key not in self._compiled:
            self._compiled[key] = _api.compile(self._bytes, input_shapes=shapes, elements=elements, **self._options)
        model = self._compiled[key]
        # An optional that has a value is its tensor.
        values = model.run(feed) if set(feed) == {p.name for p in model.inputs} else model.run([feed[k] for k in feed])
        return namedtupledict("Outputs", [name for name, _ in self._outputs])(*self._grouped(values))

    def _grouped(self, values: Any) -> list[Any]:
        """The model's outputs: the tensors of a sequence become a list again."""
        tensors = {name for name, kind in self._outputs if kind == "tensor_type"}
        result = []
        for name, kind in self._outputs:
            if kind != "sequence_type":
                result.append(values[name])
                continue
            own = [n for n in values.names if n not in tensors and n.startswith(name + "_") and n[len(name) + 1:].isdigit()]
            result.append([values[n] for n in sorted(own, key=lambda n: int(n[len(name) + 1:]))])
        return result


class TcEmitBackend(Backend):
    """The backend. Keyword arguments of `prepare` are options of `tc_emit.compile`; devices: "CPU"."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TcEmitBackendRep:
        """A model ready to run; what it needs that is not supported raises when it is compiled, which is the first run."""
        if not cls.supports_device(device):
            raise RunError(f"tc_emit.onnx_backend runs on CPU, not on {device}")
        return TcEmitBackendRep(model, kwargs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> Any:
        """Runs one operator; inputs: arrays in its order."""
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        named = [name for name in node.input if name]
        arrays = [np.asarray(x) for x in inputs]
        values = [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in zip(named, arrays)]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", values, outputs)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        del model.graph.output[:]
        known = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
        model.graph.output.extend(known.get(o.name, o) for o in outputs)
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU" or device.startswith("CPU:")


prepare, run_model, run_node, supports_device = (TcEmitBackend.prepare, TcEmitBackend.run_model, TcEmitBackend.run_node,
                                                 TcEmitBackend.supports_device)
