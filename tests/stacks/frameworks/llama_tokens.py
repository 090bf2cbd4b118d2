"""llama.cpp's text of a model of random numbers, all layers on the device, and none: NumPy's tokens, in doubles.

A token that leads by a hair would depend on how a CPU adds (of Q4_0's models most have one: -fa off gives another
text). So the numbers are those of which each token leads by LEAD, which is several times what rounding does.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from llama_by_numpy import HEADS, text_of

WIDTH, LAYERS, INNER = 256, 2, 512
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
SEEDS = {"F16": 3920, "Q8_0": 3920, "Q4_0": 705}
PROMPT, LENGTH, LEAD = "abc", 8, 0.3
COMMAND = f"llama-completion -p {PROMPT} -n {LENGTH} --temp 0 -no-cnv --no-warmup --no-display-prompt".split()


def write(path, name):
    random, kind = np.random.default_rng(SEEDS[name]), gguf.GGMLQuantizationType[name]
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        ("context_length", 256), ("embedding_length", WIDTH), ("block_count", LAYERS), ("feed_forward_length", INNER),
        ("head_count", HEADS), ("head_count_kv", HEADS), ("layer_norm_rms_eps", 1e-5), ("vocab_size", len(TOKENS)),
        ("rope_dimension_count", WIDTH // HEADS), ("tokenizer_model", "llama"), ("token_list", TOKENS),
        ("token_scores", [0.0] * len(TOKENS)), ("token_types", [2, 3, 3] + [6] * 256), ("bos_token_id", 1),
        ("eos_token_id", 2), ("unk_token_id", 0),
    ):
        getattr(writer, f"add_{add}")(value)

    def matrix(name, rows, columns):
        values = (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    matrix("token_embd.weight", len(TOKENS), WIDTH)
    matrix("output.weight", len(TOKENS), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        for name, rows, columns in (("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER)):
            matrix(f"blk.{layer}.ffn_{name}.weight", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def text(path, layers):
    """Whole output ends in two ends of lines. llama.cpp prints by a thread that its exit does not wait for."""
    words = [*COMMAND, "-m", str(path), "-ngl", str(layers)]
    for _ in range(20):
        done = subprocess.run(words, capture_output=True)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        if done.stdout.endswith(b"\n\n"):
            return done.stdout
    raise AssertionError("its output was never whole")


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.gguf"
    write(path, sys.argv[1].upper())
    expected, lead = text_of(path, PROMPT, LENGTH)
    here, there = text(path, 99), text(path, 0)
print(here, there, expected, f"{lead:.2f}")
assert lead > LEAD, "another seed"
assert here == there == expected + b"\n\n"
print("PASSED")
