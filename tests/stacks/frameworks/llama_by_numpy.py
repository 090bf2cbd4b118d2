"""What a Llama says, by NumPy in doubles, from the file that llama.cpp reads, of a tokenizer that has bytes alone."""

import gguf
import numpy as np

BEGIN, FIRST_BYTE = 1, 3
HEADS, EPSILON, TURN = 4, 1e-5, 10000.0


def normal(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)


def turned(x):
    """By its place: pairs of neighbours are points of a plane."""
    size = x.shape[-1]
    angle = np.arange(len(x))[:, None, None] * TURN ** (-np.arange(0, size, 2) / size)
    point = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([point.real, point.imag], -1).reshape(x.shape)


def attention(q, k, v):
    q, k, v = (x.reshape(len(x), HEADS, -1) for x in (q, k, v))
    scores = np.einsum("ihd,jhd->hij", turned(q), turned(k)) / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(len(q), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,jhd->ihd", weights / weights.sum(-1, keepdims=True), v).reshape(len(q), -1)


def scores_of_next(weights, tokens):
    x = weights["token_embd.weight"][tokens]
    for layer in range(sum(name.endswith("attn_q.weight") for name in weights)):
        q, k, v, output, gate, up, down = (
            weights[f"blk.{layer}.{name}.weight"].T
            for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        )
        h = normal(x)
        x = x + attention(h @ q, h @ k, h @ v) @ output
        h = normal(x)
        x = x + (h @ gate / (1 + np.exp(-h @ gate)) * (h @ up)) @ down
    return weights["output.weight"] @ normal(x[-1])


def text_of(path, prompt, length):
    """``length`` bytes, and by how much the one that leads least does."""
    tensors = gguf.GGUFReader(path).tensors
    weights = {each.name: gguf.quants.dequantize(each.data, each.tensor_type).astype(np.float64) for each in tensors}
    tokens = [BEGIN, *(FIRST_BYTE + byte for byte in f"\N{LOWER ONE EIGHTH BLOCK}{prompt}".encode())]
    leads = []
    for _ in range(length):
        scores = scores_of_next(weights, tokens)
        second, first = np.argsort(scores)[-2:]
        leads.append(scores[first] - scores[second])
        tokens.append(int(first))
    return bytes(token - FIRST_BYTE for token in tokens[-length:]), min(leads)
