"""Products of models that are typed float16, bfloat16 or 8 bits, or that --precision rounds: what PTX has to show for each."""
import numpy as np
import onnx
from onnx import TensorProto, helper

# Of each model: its element types, options, and what PTX must hold. The product is large enough to be worth rounding.
MODELS = {
    "f16": (TensorProto.FLOAT16, TensorProto.FLOAT16, (), "f32.f16.f16.f32"),
    "bf16": (TensorProto.BFLOAT16, TensorProto.BFLOAT16, (), "f32.bf16.bf16.f32"),
    "s8": (TensorProto.INT8, TensorProto.INT8, (), "s32.s8.s8.s32"),
    "u8s8": (TensorProto.UINT8, TensorProto.INT8, (), "s32.u8.s8.s32"),
    "rounded_f16": (TensorProto.FLOAT, TensorProto.FLOAT, ("--precision", "fp16"), "f32.f16.f16.f32"),
    "rounded_bf16": (TensorProto.FLOAT, TensorProto.FLOAT, ("--precision", "bf16"), "f32.bf16.bf16.f32"),
    "rounded_tf32": (TensorProto.FLOAT, TensorProto.FLOAT, ("--precision", "tf32"), "f32.tf32.tf32.f32"),
    "attention_f16": (TensorProto.FLOAT16, TensorProto.FLOAT16, (), "f32.f16.f16.f32"),
    "attention_bf16": (TensorProto.BFLOAT16, TensorProto.BFLOAT16, (), "f32.bf16.bf16.f32"),
}
ROWS, DEPTH, COLUMNS = 512, 2048, 512
# With --arch sm_90a: the types of the products of warp groups.
GROUPS = {"f16": "f32.f16.f16", "bf16": "f32.bf16.bf16", "s8": "s32.s8.s8", "u8s8": "s32.u8.s8", "rounded_f16": "f32.f16.f16"}


def save(node, inputs, output, initializers, path):
    """Saves a model of one node; `inputs` are {name: (type, shape)}, `output` is (type, shape)."""
    graph = helper.make_graph([node], path.stem, [helper.make_tensor_value_info(name, *value) for name, value in inputs.items()],
                              [helper.make_tensor_value_info("y", *output)], initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), path)
    return path


def product(name, path):
    """Saves model `name`: one matrix product with a known right factor, or one attention."""
    left, right, _, _ = MODELS[name]
    if name.startswith("attention"):
        streams = (left, (1, 12, ROWS, 64))
        return save(helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1), dict.fromkeys("qkv", streams), streams, [], path)
    integers = left in (TensorProto.INT8, TensorProto.UINT8)
    numbers = np.random.RandomState(1).randint(-3, 4, (DEPTH, COLUMNS))
    weight = helper.make_tensor("w", right, numbers.shape, numbers.astype(np.int8 if integers else np.float32).flatten().tolist())
    node = helper.make_node("MatMulInteger" if integers else "MatMul", ["x", "w"], ["y"])
    return save(node, {"x": (left, (ROWS, DEPTH))}, (TensorProto.INT32 if integers else left, (ROWS, COLUMNS)), [weight], path)


def complaint_of_groups(name, ptx):
    """None if all products of `ptx` are those of warp groups, in the model's types."""
    counts = {word: ptx.count(word) for word in ("wgmma.mma_async", "wgmma.commit_group", "mma.sync", "ldmatrix", "fence.proxy.async", ".local.")}
    typed = len([line for line in ptx.splitlines() if "wgmma.mma_async" in line and GROUPS[name] in line])
    wrong = counts["mma.sync"] or counts["ldmatrix"] or counts[".local."] or not counts["wgmma.commit_group"] or not counts["fence.proxy.async"]
    return f"not all products are groups' of {GROUPS[name]}: {typed} of {counts}" if wrong or typed < 4 or typed != counts["wgmma.mma_async"] else None


def complaint(name, ptx):
    """None if `ptx` multiplies on tensor cores in the model's types, and fills and reads shared memory by the instructions for it."""
    instruction = MODELS[name][3]
    counts = {word: ptx.count(word) for word in ("mma.sync", instruction, "ldmatrix.sync", "cp.async.", ".local.")}
    if counts["mma.sync"] < 2 or counts["mma.sync"] != counts[instruction]:
        return f"not all products are {instruction}: {counts}"
    # One load of a left factor and one of a right one serve at least one product; each step of a tile waits for copies.
    if not 2 <= counts["ldmatrix.sync"] <= 2 * counts["mma.sync"] or counts["cp.async."] < 2 or counts[".local."]:
        return f"the tiles' way is another: {counts}"
    return None
