"""What the networks of the bundle take with PyTorch's libraries (cuDNN, cuBLAS), by replays of a CUDA graph on one image or 128 words."""
import statistics
import sys

import torch


def microseconds(call):
    """The median of replays of a graph that holds one call."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        call()
    times = []
    for _ in range(60):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(), graph.replay(), end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return statistics.median(times[10:])


def precision(name):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"
    return torch.float16 if name == "fp16" else torch.float32


def line(what, call):
    try:
        print(f"PyTorch {torch.__version__}, {what}: {microseconds(call):.1f} us", flush=True)
    except Exception as problem:  # a library that is not here, or a network that it does not have
        print(f"PyTorch, {what}: {str(problem).splitlines()[0][:120]}", flush=True)


def kernels():
    for name in ("fp32", "tf32", "fp16"):
        dtype = precision(name)
        a, b = (torch.randn(4096, 4096, device="cuda", dtype=dtype) for _ in range(2))
        line(f"MatMul 4096 x 4096 x 4096 {name}", lambda: a @ b)
    x, y = (torch.randn(64 << 20, device="cuda") for _ in range(2))
    line("Relu of Add, 64 M", lambda: torch.relu_(x + y))
    rows, gain = torch.randn(16384, 1024, device="cuda"), torch.randn(1024, device="cuda")
    line("LayerNorm 16384 x 1024", lambda: torch.nn.functional.layer_norm(rows, (1024,), gain))
    line("Softmax 16384 x 1024", lambda: torch.softmax(rows, -1))
    square = torch.randn(4096, 4096, device="cuda")
    line("Transpose 4096 x 4096", lambda: square.t().contiguous())
    line("Sum of 16 M", lambda: rows.sum())
    q, k, v = (torch.randn(8, 16, 2048, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    line("attention 8 x 16 x 2048 x 64 fp16", lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))


def networks():
    import torchvision
    torch.backends.cudnn.benchmark = True
    for name in ("mobilenet_v2", "efficientnet_b0", "resnet50", "vit_b_16"):
        for kind in ("fp32", "tf32", "fp16"):
            dtype = precision(kind)
            model = getattr(torchvision.models, name)().eval().cuda().to(dtype).to(memory_format=torch.channels_last)
            x = torch.randn(1, 3, 224, 224, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
            line(f"{name} {kind}", lambda: model(x))
    from transformers import BertConfig, BertModel
    for kind in ("fp32", "tf32", "fp16"):
        model = BertModel(BertConfig()).eval().cuda().to(precision(kind))
        ids = torch.ones(1, 128, dtype=torch.int64, device="cuda")
        line(f"bert_base {kind}", lambda: model(ids).last_hidden_state)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("no GPU")
    kernels()
    networks()
