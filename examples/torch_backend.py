"""torch.compile with tc-emit: PyTorch exports what it has captured, the emitted C runs it.

usage: python torch_backend.py    (needs tc-emit, torch, onnx and onnxscript)
"""
import torch

import tc_emit


def tc(graph, inputs):
    """A backend of torch.compile: every captured graph becomes a package of C."""
    program = torch.onnx.export(graph.eval(), tuple(inputs), dynamo=True, verbose=False)
    model = tc_emit.compile(program.model_proto)
    def run(*tensors):
        return [torch.from_dlpack(y) for y in model.run([t.contiguous() for t in tensors])]
    return run


if __name__ == "__main__":
    network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4), torch.nn.Softmax(-1)).eval()
    x = torch.randn(3, 8)
    with torch.no_grad():
        compiled = torch.compile(network, backend=tc)
        print("largest difference", float((compiled(x) - network(x)).abs().max()))
        assert torch.allclose(compiled(x), network(x), atol=1e-5)
