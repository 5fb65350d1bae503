#!/usr/bin/env python3
"""llama.cpp's part of llm.py, run by a Python that has llama-cpp-python, gguf, onnx and numpy.

usage: llama_peer.py MODEL.onnx MODEL.gguf THREADS PROMPT TOKENS LOGITS

Writes llm.py's model of 4 bits as GGUF, if that is not there yet: a block of MatMulNBits is one of Q4_0, its scale rounded to a half. Prints
milliseconds as the driver of llm.py does: of the prompt, thrice, then of each token; the last logits of each run go to LOGITS.
"""
import sys
import time
from pathlib import Path

import numpy as np

HEADS, KEY_HEADS, SIZE, ROOM = 32, 4, 64, 1024


def blocks(codes, scales):
    """[columns][blocks][16] of two codes a byte, neighbours together, as Q4_0: a half, then element i beside element i + 16."""
    codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:2], 32)
    halves = scales.astype(np.float16)[..., None].view(np.uint8)
    packed = np.concatenate([halves, codes[..., :16] | codes[..., 16:] << 4], axis=-1)
    return packed.reshape(packed.shape[0], -1)


def by_pairs(rows, heads):
    """Rows of a projection to queries or keys: a head's halves, which ONNX Runtime rotates, become pairs, which llama.cpp does."""
    return rows.reshape(heads, 2, SIZE // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def write(model, path):
    import gguf
    import onnx
    from onnx import numpy_helper
    graph = onnx.load(model).graph
    weights = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
    products = [blocks(weights[n.input[1]], weights[n.input[2]].reshape(weights[n.input[1]].shape[:2])) for n in graph.node if n.op_type == "MatMulNBits"]
    table = next(weights[n.input[0]] for n in graph.node if n.op_type == "Gather" and n.input[1] == "ids")
    layers, (vocabulary, hidden) = len(products) // 5, table.shape
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_context_length(ROOM)
    w.add_embedding_length(hidden)
    w.add_block_count(layers)
    w.add_feed_forward_length(products[2].shape[0])
    w.add_head_count(HEADS)
    w.add_head_count_kv(KEY_HEADS)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_dimension_count(SIZE)
    w.add_rope_freq_base(10000.0)
    w.add_vocab_size(vocabulary)
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{k:02X}>" for k in range(256)]
    names += [f"word{k}" for k in range(len(names), vocabulary)]
    w.add_tokenizer_model("llama")
    w.add_token_list(names)
    w.add_token_scores([0.0] * vocabulary)
    w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259))
    q4 = gguf.GGMLQuantizationType.Q4_0
    ones = np.ones(hidden, np.float32)
    w.add_tensor("token_embd.weight", table.astype(np.float32))
    for n in range(layers):
        streams, out, gate, up, down = products[5 * n:5 * n + 5]
        q, k, v = np.split(streams, [HEADS * SIZE, (HEADS + KEY_HEADS) * SIZE])
        parts = {"attn_q": by_pairs(q, HEADS), "attn_k": by_pairs(k, KEY_HEADS), "attn_v": v, "attn_output": out, "ffn_gate": gate, "ffn_up": up, "ffn_down": down}
        for name, value in parts.items():
            w.add_tensor(f"blk.{n}.{name}.weight", np.ascontiguousarray(value), raw_dtype=q4)
        for name in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"blk.{n}.{name}.weight", ones)
    w.add_tensor("output_norm.weight", ones)
    w.add_tensor("output.weight", products[-1], raw_dtype=q4)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    model, path, threads, prompt, tokens, target = sys.argv[1:]
    if not Path(path).exists():
        write(model, path)
    import llama_cpp
    threads, prompt, tokens = int(threads), int(prompt), int(tokens)
    llama = llama_cpp.Llama(path, n_ctx=ROOM, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
    ids, logits = [(k * 37 + 11) % llama.n_vocab() for k in range(ROOM)], []
    for k in range(3 + tokens):
        if k < 3:
            llama.reset()
        start = time.perf_counter()
        llama.eval(ids[:prompt] if k < 3 else ids[:1])
        last = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(llama.ctx, -1), (llama.n_vocab(),))
        print(f"{1e3 * (time.perf_counter() - start):.4f}")
        if k >= 2:
            logits.append(last.copy())
    np.array(logits, np.float32).tofile(target)


if __name__ == "__main__":
    main()
