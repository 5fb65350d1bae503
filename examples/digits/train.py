#!/usr/bin/env python3
"""Trains the small network of this example and writes digits.onnx and the test pictures beside this script.

usage: train.py          (run it with `scripts/python_env nets`; takes a quarter of a minute)

The data are scikit-learn's 1,797 handwritten digits, 8 x 8 pixels of 0 to 16. Every fifth picture is kept out of the
training; the accuracy on those is printed, and the second of each digit among them becomes pictures/N: input_0.npy for
the emitted program and picture.txt, the same picture as text.
"""
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
SHADES = " .:-=+*#%@"


def network():
    """3 x 3 convolution to 16 channels, ReLU, 2 x 2 max pooling, dense layer to 10 classes."""
    return torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(256, 10))


def train(model, images, labels, epochs=60):
    """Adam on shuffled batches of 32; seeded, on one thread, so that the same versions give the same weights."""
    torch.set_num_threads(1)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(32):
            loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def as_onnx(model):
    """The network as an ONNX model with readable names; its output are probabilities."""
    conv, dense = model[0], model[4]
    weights = [numpy_helper.from_array(tensor.detach().numpy(), name) for name, tensor in (
        ("conv.weight", conv.weight), ("conv.bias", conv.bias), ("dense.weight", dense.weight), ("dense.bias", dense.bias))]
    nodes = [
        helper.make_node("Conv", ["image", "conv.weight", "conv.bias"], ["conv"], "conv", pads=[1, 1, 1, 1],
                         kernel_shape=[3, 3]),
        helper.make_node("Relu", ["conv"], ["relu"], "relu"),
        helper.make_node("MaxPool", ["relu"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["logits"], "dense", transB=1),
        helper.make_node("Softmax", ["logits"], ["probability"], "softmax"),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])
    probability = helper.make_tensor_value_info("probability", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "digits", [image], [probability], weights,
                              doc_string="classifies an 8 x 8 grey image of a handwritten digit")
    result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="train.py")
    onnx.checker.check_model(result, full_check=True)
    return result


def write_pictures(images, labels):
    """The second picture of each digit, as the program's input and as text."""
    for digit in range(10):
        picture = images[labels == digit][1]
        folder = HERE / "pictures" / str(digit)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "input_0.npy", picture[None].astype(np.float32))
        rows = ["".join(SHADES[min(int(grey * len(SHADES)), len(SHADES) - 1)] * 2 for grey in row) for row in picture[0]]
        (folder / "picture.txt").write_text("\n".join(row.rstrip() for row in rows) + "\n")


def main():
    data = load_digits()
    images, labels = (data.images / 16).astype(np.float32)[:, None], data.target
    kept_out = np.arange(len(images)) % 5 == 0
    torch.manual_seed(7)
    model = network()
    train(model, torch.from_numpy(images[~kept_out]), torch.from_numpy(labels[~kept_out]))
    with torch.no_grad():
        found = model(torch.from_numpy(images[kept_out])).argmax(1).numpy()
    right = int((found == labels[kept_out]).sum())
    print(f"{right} of {kept_out.sum()} pictures that were kept out of the training are recognised")
    onnx.save(as_onnx(model), HERE / "digits.onnx")
    write_pictures(images[kept_out], labels[kept_out])


if __name__ == "__main__":
    main()
