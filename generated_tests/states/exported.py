"""Language models as ONNX Runtime's builder writes them, from configurations of transformers with random weights: cases like those of
models.py. Names of sizes become those of models.py; caches of windows have CAPACITY rows.
"""
import contextlib
import importlib.util
import io
import json
import sys
import warnings
from pathlib import Path

import onnx

ROOM, MOST, BATCH, WINDOW, CAPACITY = 20, 8, 3, 5, 7
RENAMED = {"sequence_length": "seq", "past_sequence_length": "past", "total_sequence_length": "total"}
FIXED = {"batch_size": 1, "past_sliding_length": CAPACITY, "total_sliding_length": CAPACITY}
SIZES = dict(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
PARTS = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4,
             layer_types=["linear_attention", "full_attention"],
             rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1], "mrope_interleaved": True})
VISION = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64, patch_size=4, spatial_merge_size=2,
              temporal_patch_size=1, num_position_embeddings=16, deepstack_visual_indexes=[])
LOCAL = dict(head_dim=32, sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"])


def kinds(t):
    """Configuration and model by kind; `t`: transformers."""
    def long_rope(size):
        return {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1 + 0.1 * k for k in range(size)],
                "long_factor": [2 + 0.2 * k for k in range(size)], "original_max_position_embeddings": 12}

    yarn = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
            "original_max_position_embeddings": 4096}
    text = t.Qwen3_5TextConfig
    return {
        "llama": (lambda: t.LlamaConfig(**SIZES, tie_word_embeddings=True), t.LlamaForCausalLM),
        "mistral": (lambda: t.MistralConfig(**SIZES, head_dim=16, sliding_window=None), t.MistralForCausalLM),
        "qwen2": (lambda: t.Qwen2Config(**SIZES), t.Qwen2ForCausalLM),
        "qwen3": (lambda: t.Qwen3Config(**SIZES, head_dim=32), t.Qwen3ForCausalLM),
        "phi3": (lambda: t.Phi3Config(**SIZES, original_max_position_embeddings=12, rope_parameters=long_rope(8)), t.Phi3ForCausalLM),
        "gemma": (lambda: t.GemmaConfig(**SIZES, head_dim=32), t.GemmaForCausalLM),
        "gemma2": (lambda: t.Gemma2Config(**SIZES, **LOCAL, query_pre_attn_scalar=32), t.Gemma2ForCausalLM),
        "gemma3": (lambda: t.Gemma3TextConfig(**SIZES, **LOCAL, query_pre_attn_scalar=32), t.Gemma3ForCausalLM),
        "gpt_oss": (lambda: t.GptOssConfig(**{**SIZES, **LOCAL, "intermediate_size": 64, "head_dim": 64}, num_local_experts=4, num_experts_per_tok=2,
                                           rope_parameters=yarn), t.GptOssForCausalLM),
        "granite": (lambda: t.GraniteConfig(**SIZES, embedding_multiplier=2.0, residual_multiplier=0.5, attention_multiplier=0.2, logits_scaling=3.0),
                    t.GraniteForCausalLM),
        "lfm2": (lambda: t.Lfm2Config(**SIZES, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False), t.Lfm2ForCausalLM),
        "lfm2_moe": (lambda: t.Lfm2MoeConfig(**SIZES, moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2, num_dense_layers=1,
                                             layer_types=["conv", "full_attention"]), t.Lfm2MoeForCausalLM),
        "qwen3_5": (lambda: t.Qwen3_5Config(text_config=text(**SIZES, **PARTS, head_dim=32).to_dict(), vision_config=VISION),
                    t.Qwen3_5ForConditionalGeneration),
        "olmo": (lambda: t.OlmoConfig(**SIZES), t.OlmoForCausalLM),
        "phi": (lambda: t.PhiConfig(**{**SIZES, "hidden_size": 128}, partial_rotary_factor=0.5), t.PhiForCausalLM),
        "nemotron": (lambda: t.NemotronConfig(**{**SIZES, "hidden_size": 128}, partial_rotary_factor=0.5), t.NemotronForCausalLM),
    }


# kind, precision; where precision is int4, the level of accuracy: 1 multiplies by floats, 4 by bytes
CHOSEN = [("llama", "fp32"), ("mistral", "int4_1"), ("qwen2", "int4_4"), ("qwen3", "int4_1"), ("phi3", "fp32"), ("gemma", "fp32"), ("gemma2", "fp32"),
          ("gemma3", "int4_1"), ("gpt_oss", "fp32"), ("gpt_oss", "int4_1"), ("granite", "fp32"), ("lfm2", "fp32"), ("lfm2_moe", "fp32"), ("qwen3_5", "fp32"),
          ("qwen3_5", "int4_1"), ("olmo", "int4_4"), ("phi", "fp32"), ("nemotron", "fp32"), ("llama", "fp16"), ("qwen3", "fp16"), ("gpt_oss", "fp16")]
NAMES = [f"{kind}_{precision}" for kind, precision in CHOSEN]


def builder():
    """The module. Its package loads libraries of its own, the module needs none of them."""
    folder = Path(importlib.util.find_spec("onnxruntime_genai").submodule_search_locations[0]) / "models"
    sys.path.insert(0, str(folder))
    return importlib.import_module("builder")


def weights(torch, model, shifted):
    """Numbers that keep sums near one; norms that add one to their weights, `shifted`, have small ones."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() >= 2:
                p.normal_(0, p.shape[-1] ** -0.5)
            else:
                p.normal_(float("norm" in name and not shifted), 0.1 if "norm" in name else 0.3)


def save_blocks(torch, folder):
    """The experts of gpt-oss as its checkpoints have them: MXFP4, which the builder brings into its own 4 bits."""
    from safetensors.torch import load_file, save_file
    tensors = load_file(folder / "model.safetensors")
    for layer in range(2):
        for name, rows in (("gate_up", 128), ("down", 64)):
            tensors[f"model.layers.{layer}.mlp.experts.{name}_proj_blocks"] = torch.randint(0, 256, (4, rows, 2, 16), dtype=torch.uint8)
            tensors[f"model.layers.{layer}.mlp.experts.{name}_proj_scales"] = torch.randint(122, 125, (4, rows, 2), dtype=torch.uint8)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def save_tokenizer(folder):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2} | {chr(33 + k): 3 + k for k in range(90)}
    own = Tokenizer(models.BPE(vocabulary, []))
    PreTrainedTokenizerFast(tokenizer_object=own, bos_token="<s>", eos_token="</s>", pad_token="<pad>").save_pretrained(folder)


def as_expected(config):
    """The builder reads configurations of older versions of transformers."""
    rope = getattr(config, "rope_parameters", None)
    if isinstance(rope, dict) and "sliding_attention" in rope:
        config.rope_local_base_freq, config.rope_theta = rope["sliding_attention"]["rope_theta"], rope["full_attention"]["rope_theta"]
        config.rope_parameters = {"rope_type": "default", "rope_theta": config.rope_theta}
    elif isinstance(rope, dict) and rope.get("rope_type") == "longrope":
        rope["type"] = "longrope"


def exported(kind, precision, folder):
    """The model of ONNX, and the size of its heads."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    configure, model_class = kinds(transformers)[kind]
    model = model_class(configure()).eval()
    weights(torch, model, "gemma" in kind or "qwen3_5" in kind)
    source, out, cache = folder / "source", folder / "exported", folder / "cache"
    model.save_pretrained(source)
    if kind == "gpt_oss" and precision.startswith("int4"):
        save_blocks(torch, source)
    save_tokenizer(source)
    kept, _, level = precision.partition("_")
    # Halves are written for CUDA alone. ONNX Runtime's operator for processors has no norms of heads.
    where, said = ("cuda", ["fuse_qk_norm_gqa=false"]) if kept == "fp16" else ("cpu", [f"accuracy_level={level}"] if level else [])
    module = builder()
    options = module.parse_extra_options("", str(source), str(out), kept, where, str(cache), said)
    as_expected(options["hf_details"]["hf_config"])
    module.create_model("", str(source), str(out), kept, where, str(cache), **options)
    facts = json.loads((out / "genai_config.json").read_text())
    return onnx.load(out / "model.onnx"), facts["model"]["decoder"]["head_size"]


def named(model, head_size):
    """Sizes as models.py calls them; the pairs of states."""
    states, fixed = {}, FIXED | {"kv_cache_dim": head_size}
    for value in [*model.graph.input, *model.graph.output]:
        for d in value.type.tensor_type.shape.dim:
            if d.dim_param in fixed:
                d.dim_value = fixed[d.dim_param]
            elif d.dim_param:
                d.dim_param = RENAMED[d.dim_param]
        if value.name.startswith("past"):
            states[value.name] = "present" + value.name[value.name.index("."):]
    return states


def cases(names=NAMES, folder=None):
    for name in names:
        kind, precision = CHOSEN[NAMES.index(name)]
        place = Path(folder) / name
        place.mkdir(parents=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, head_size = exported(kind, precision, place)
        yield name, model, named(model, head_size), ["--dim=seq=1..%d" % MOST, "--dim=past=0..%d" % ROOM, "--dim=total=past+seq"]
