"""Kernel arguments to bytes."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator.interface import Buffer, compute_hidden_argument, pack_arguments
from luthier_py.samples import sample

SAXPY = load(sample("saxpy").path.read_bytes()).kernel("saxpy")
GRID, BLOCK = (4, 2, 1), (256, 1, 1)
X, Y = Buffer(0x1000, 64), Buffer(0x2000, 64)


def test_values_and_hidden_arguments():
    segment = pack_arguments(SAXPY, [7, 0.5, X, Y], GRID, BLOCK)
    assert len(segment) == SAXPY.descriptor.kernarg_size
    assert struct.unpack_from("<IfQQ", segment) == (7, 0.5, 0x1000, 0x2000)
    hidden = {
        arg.value_kind: int.from_bytes(segment[arg.offset : arg.offset + arg.size], "little")
        for arg in SAXPY.args
        if arg.hidden
    }
    assert [hidden[f"hidden_block_count_{axis}"] for axis in "xyz"] == [4, 2, 1]
    assert [hidden[f"hidden_group_size_{axis}"] for axis in "xyz"] == [256, 1, 1]
    assert [hidden[f"hidden_remainder_{axis}"] for axis in "xyz"] == [0, 0, 0]
    assert hidden["hidden_grid_dims"] == 2


def test_numpy_scalars_bytes_and_negative_integers():
    same = [pack_arguments(SAXPY, [n, a, X, Y], GRID, BLOCK) for n, a in (
        (7, 0.5), (np.uint32(7), np.float32(0.5)), (bytes([7, 0, 0, 0]), struct.pack("<f", 0.5)))]
    assert same[0] == same[1] == same[2]
    assert pack_arguments(SAXPY, [-1, 0.5, X, Y], GRID, BLOCK)[:4] == b"\xff" * 4
    assert pack_arguments(SAXPY, [7, -float("inf"), X, Y], GRID, BLOCK)[4:8] == b"\0\0\x80\xff"


@pytest.mark.parametrize("values,words", [
    ([7, 0.5, X], "takes 4 arguments"), ([7, 0.5, X, Y, Y], "not 5"), ([1 << 32, 0.5, X, Y], "does not fit"),
    ([7, 1e39, X, Y], r"1e\+39 does not fit in 4 bytes"), ([-(1 << 31) - 1, 0.5, X, Y], "does not fit in 4 bytes"),
    ([X, 0.5, X, Y], "by value"),
    ([7, 0.5, 1.5, Y], "a float is given"), ([np.uint64(7), 0.5, X, Y], "8 bytes are given"),
])  # fmt: skip
def test_wrong_arguments(values, words):
    with pytest.raises(Invalid, match=words) as caught:
        pack_arguments(SAXPY, values, GRID, BLOCK)
    assert "saxpy" in str(caught.value)


@pytest.mark.parametrize(("kind", "size"), [("by_value", 8), ("global_buffer", 8), ("dynamic_shared_pointer", 4)])
def test_a_buffer_is_its_address_wherever_that_fits(kind, size):
    record = replace(SAXPY, args=(replace(SAXPY.args[0], value_kind=kind, size=size),))
    assert pack_arguments(record, [X], GRID, BLOCK)[: size + 1] == (0x1000).to_bytes(size + 1, "little")
    with pytest.raises(Invalid, match=f"does not fit in {size} bytes"):
        pack_arguments(record, [replace(X, address=1 << 8 * size)], GRID, BLOCK)


def test_hidden_values():
    assert compute_hidden_argument("hidden_grid_dims", (1, 1, 1), (64, 1, 1)) == 1
    assert compute_hidden_argument("hidden_grid_dims", (1, 1, 2), (64, 1, 1)) == 3
    assert compute_hidden_argument("hidden_dynamic_lds_size", (1, 1, 1), (1, 1, 1), 512) == 512
    assert compute_hidden_argument("hidden_hostcall_buffer", (1, 1, 1), (1, 1, 1)) == 0
