"""The table of real networks: what each is, how it is exported, and the flags that bind its symbolic sizes."""
import dataclasses

import builders
import quantised


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    build: object  # () -> builders.Built
    exporter: str  # "old": TorchScript; "new": torch.export; "functions": the new one, then outlined; "": ready made
    flags: tuple = ()  # for tc-emit: --dim and --input-shape
    seed: int = 0
    max_error: float = 1e-5  # of its own type, in norm: halves keep 11 bits


def torchvision(name):
    return lambda: builders.torchvision_network(name)


MINILM_DIMS = ("--dim", "batch=2", "--dim", "sequence=24")
DETECTOR_DIMS = ("--dim", "p2o.DynamicDimension.0=1", "--dim", "p2o.DynamicDimension.1=192", "--dim",
                 "p2o.DynamicDimension.2=320")

NETWORKS = (
    Network("resnet50", torchvision("resnet50"), "old"),
    Network("resnet50_new", torchvision("resnet50"), "new"),
    Network("mobilenet_v2", torchvision("mobilenet_v2"), "old"),
    Network("mobilenet_v2_new", torchvision("mobilenet_v2"), "new"),
    Network("efficientnet_b0", torchvision("efficientnet_b0"), "old"),
    Network("efficientnet_b0_new", torchvision("efficientnet_b0"), "new"),
    Network("vit_b_16", torchvision("vit_b_16"), "old"),
    Network("vit_b_16_new", torchvision("vit_b_16"), "new"),
    Network("bert_base", builders.bert_base, "old"),
    Network("bert_base_new", builders.bert_base, "new"),
    Network("bert_base_functions", builders.bert_base, "functions"),
    Network("lstm_tagger", lambda: builders.tagger("LSTM"), "old"),
    Network("lstm_tagger_new", lambda: builders.tagger("LSTM"), "new"),
    Network("gru_tagger", lambda: builders.tagger("GRU"), "old"),
    Network("gru_tagger_new", lambda: builders.tagger("GRU"), "new"),
    Network("ppocr_det", lambda: builders.ppocr("det"), "", DETECTOR_DIMS),
    Network("ppocr_rec", lambda: builders.ppocr("rec"), "", ("--input-shape", "x=1x3x48x320")),
    Network("ppocr_cls", lambda: builders.ppocr("cls"), "", ("--input-shape", "x=1x3x48x192")),
    Network("minilm", builders.minilm, "old", MINILM_DIMS),
    Network("minilm_new", builders.minilm, "new", MINILM_DIMS),
    Network("cnn_qdq", lambda: quantised.static_cnn(signed=False, per_channel=True, operators=False), ""),
    Network("cnn_qdq_signed", lambda: quantised.static_cnn(signed=True, per_channel=False, operators=False), ""),
    Network("cnn_qlinear", lambda: quantised.static_cnn(signed=False, per_channel=True, operators=True), ""),
    Network("cnn_half", quantised.half_cnn, "", max_error=2e-3),
    Network("mlp_dynamic", lambda: quantised.dynamic_mlp(signed=True), ""),
    Network("mlp_dynamic_unsigned", lambda: quantised.dynamic_mlp(signed=False), ""),
)

# Whole networks of bytes, of bench/ alone: weights have all eight bits, so that without dot products of bytes ONNX Runtime is no
# reference. What rounds otherwise by a last bit moves some bytes by one, and random weights carry that on.
BENCH_ONLY = (
    Network("resnet50_qdq", lambda: quantised.static_network("resnet50"), "", max_error=0.1),
    Network("mobilenet_v2_qdq", lambda: quantised.static_network("mobilenet_v2"), "", max_error=0.1),
    Network("bert_dynamic", quantised.dynamic_bert, "", max_error=0.1),
)
ALL = NETWORKS + BENCH_ONLY
