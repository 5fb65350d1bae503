"""The models of ONNX's backend suite, as the `onnx` wheel ships them, with the inputs and the expected outputs of each."""
import dataclasses
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from answers import session  # noqa: E402

FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
# ONNX stores what its own random generator drew. Another generator is as right: shape and type have to be equal, and the
# elements have to be possible ones.
RANDOM = re.compile(r"test_bernoulli|test_training_dropout(?!.*zero_ratio)")

# ONNX's reference takes length_resized for the scale times the length, with its fraction; ONNX Runtime and PyTorch take the
# length. Models are exported for those: what ONNX Runtime computes is expected.
AS_RUNTIMES = {"test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners"}


@dataclasses.dataclass(frozen=True)
class Case:
    folder: str
    name: str
    model: Path
    data: Path  # folder with input_0.pb ...; for light models, the file with the one output

    @property
    def label(self):
        return f"{self.folder}/{self.name}"

    @property
    def random(self):
        return bool(RANDOM.match(self.name))


def all_cases():
    """Every case, in the order of folders above and of names within each."""
    root = Path(onnx.backend.test.__file__).parent / "data"
    cases = []
    for folder in FOLDERS:
        if folder == "light":
            for model in sorted((root / folder).glob("*.onnx")):
                cases.append(Case(folder, model.stem, model, model.with_name(f"{model.stem}_output_0.pb")))
            continue
        for model in sorted((root / folder).glob("*/model.onnx")):
            sets = sorted(model.parent.glob("test_data_set_*"))
            assert len(sets) == 1, f"{model}: {len(sets)} data sets"
            cases.append(Case(folder, model.parent.name, model, sets[0]))
    return cases


def read_value(path, type_proto):
    """A stored value: an array, a list of values for a sequence, None for an empty optional."""
    raw = path.read_bytes()
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(raw))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(raw))
    return numpy_helper.to_array(onnx.TensorProto.FromString(raw))


def outputs_of(model):
    """[(name, TypeProto)] of the model's outputs."""
    return [(value.name, value.type) for value in model.graph.output]


def inputs_of(model):
    """[(name, TypeProto)] of the inputs that a caller has to give."""
    constants = {value.name for value in model.graph.initializer}
    return [(value.name, value.type) for value in model.graph.input if value.name not in constants]


def expected_outputs(case, model):
    """The stored outputs, one for each output of the model."""
    if case.folder == "light":
        return [read_value(case.data, model.graph.output[0].type)]
    if case.name in AS_RUNTIMES:
        feed = {name: value for (name, _), value in zip(inputs_of(model), stored_inputs(case, model))}
        return session(case.model).run(None, feed)
    return [read_value(case.data / f"output_{i}.pb", t) for i, (_, t) in enumerate(outputs_of(model))]


def stored_inputs(case, model):
    """The stored inputs of a case that is not in light/."""
    return [read_value(case.data / f"input_{index}.pb", kind) for index, (_, kind) in enumerate(inputs_of(model))]


def tensors_in(value, kind):
    """[(array, TypeProto of a tensor)]: what a sequence or optional holds, or the tensor itself. A program has one input or
    output for each."""
    which = kind.WhichOneof("value")
    if which == "optional_type":
        return [] if value is None else tensors_in(value, kind.optional_type.elem_type)
    if which == "sequence_type":
        return [pair for element in value for pair in tensors_in(element, kind.sequence_type.elem_type)]
    return [(value, kind)]


def write_inputs(case, model, folder, fixed=()):
    """Makes sure that the inputs, without the fixed ones, lie in some folder as input_0.pb or input_0.npy ..., and returns that
    folder."""
    kinds = [kind for _, kind in inputs_of(model)]
    if case.folder != "light":
        if all(kind.HasField("tensor_type") for kind in kinds) and not fixed:
            return case.data
        folder.mkdir()
        tensors = [pair for value, (name, kind) in zip(stored_inputs(case, model), inputs_of(model)) if name not in fixed
                   for pair in tensors_in(value, kind)]
        for index, (array, _) in enumerate(tensors):
            (folder / f"input_{index}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
        return folder
    folder.mkdir()
    for index, (_, kind) in enumerate(inputs_of(model)):
        shape = [dim.dim_value for dim in kind.tensor_type.shape.dim]
        size = int(np.prod(shape))
        ramp = (np.arange(size).astype(np.float32) / size).reshape(shape)
        np.save(folder / f"input_{index}.npy", ramp)
    return folder


def shape_flags(case, model, fixed=()):
    """Flags that bind open sizes of the inputs, and contents of sequences and optionals, to those of the stored values."""
    flags = []
    for index, (name, kind) in enumerate(inputs_of(model)):
        if not kind.HasField("tensor_type"):
            value = read_value(case.data / f"input_{index}.pb", kind)
            shapes = ["x".join(map(str, np.shape(array))) or "scalar" for array, _ in tensors_in(value, kind)]
            flags += ["--elements", f"{name}={'none' if value is None else ','.join(shapes)}"]
            continue
        tensor = kind.tensor_type
        if name in fixed:
            continue
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            continue
        value = read_value(case.data / f"input_{index}.pb", kind)
        flags += ["--input-shape", f"{name}={'x'.join(map(str, value.shape))}"]
    return flags


def fixed_values(case, model):
    """{name: numbers} of the inputs whose values can say how large or how many the outputs are: short lists of integers and
    conditions. What a user does with --input-value where such a value has to be known."""
    values = {}
    for (name, kind), value in zip(inputs_of(model), stored_inputs(case, model) if case.folder != "light" else ()):
        if kind.HasField("tensor_type") and kind.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.BOOL) and 0 < value.size <= 8:
            values[name] = ",".join(str(int(v)) for v in value.ravel())
    return values
