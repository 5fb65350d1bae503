"""Writes what a C program needs of a tokenizer: its tokens as bytes, and the pairs that it merges.

usage: vocabulary.py tokenizer.json vocabulary.bin      (needs Python alone)

For tokenizers of Hugging Face whose model is BPE: those that take bytes (Llama 3, Qwen, GPT) and those that take characters and mark
spaces (Llama 2, Gemma, Mistral). The file, in numbers of 32 bits, the lowest byte first:

    "tokens 1"  tokens  merges  1 if a text begins with a space that nobody wrote
    for each token:  its length  its bytes            0 bytes: a token of control
    for each merge, sorted by the first two:  left  right  what becomes of them  its rank, of which the least comes first
"""
import json
import struct
import sys


def bytes_of_characters():
    """Tokenizers of bytes write byte b as this character (GPT-2's table): itself where it can be seen, else one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in seen]
    return {chr(b): b for b in seen} | {chr(256 + k): b for k, b in enumerate(hidden)}


def contains(part, kind):
    """Is there a step of this kind in a normalizer, pre-tokenizer or decoder?"""
    if isinstance(part, list):
        return any(contains(p, kind) for p in part)
    return isinstance(part, dict) and (part.get("type") == kind or any(contains(v, kind) for v in part.values()))


def spelled(token, table):
    if table:
        return bytes(table[c] for c in token) if all(c in table for c in token) else token.encode()
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    with open(sys.argv[1], encoding="utf-8") as f:
        file = json.load(f)
    model = file["model"]
    if model.get("type", "BPE") != "BPE" or "merges" not in model:
        sys.exit(f"{sys.argv[1]}: the model of the tokenizer is {model.get('type')}, not BPE")
    ids = dict(model["vocab"])
    control = set()
    for token in file.get("added_tokens", []):
        ids[token["content"]] = token["id"]
        if token.get("special"):
            control.add(token["id"])
    steps = [file.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")]
    table = bytes_of_characters() if contains(steps, "ByteLevel") else None
    texts = [b""] * (max(ids.values()) + 1)
    for token, k in ids.items():
        texts[k] = b"" if k in control else spelled(token, table)
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    merges = {}
    for rank, (a, b) in enumerate(pairs):
        if a in ids and b in ids and a + b in ids:
            merges.setdefault((ids[a], ids[b]), (ids[a + b], rank))
    with open(sys.argv[2], "wb") as f:
        f.write(b"tokens 1" + struct.pack("<III", len(texts), len(merges), contains(file.get("normalizer"), "Prepend")))
        for text in texts:
            f.write(struct.pack("<I", len(text)) + text)
        for (left, right), (result, rank) in sorted(merges.items()):
            f.write(struct.pack("<IIII", left, right, result, rank))
    print(f"{sys.argv[2]}: {len(texts)} tokens, {len(merges)} merges")


main()
