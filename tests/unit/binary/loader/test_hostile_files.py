"""Whatever the bytes, loading and linking end in a code object or in a LuthierError of one line."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier_py.base.errors import LuthierError
from luthier_py.binary.link import Chunk, NewKernel, NewVariable, Patch, link
from luthier_py.binary.loader import load, unbundle
from luthier_py.samples import SAMPLES

DATA = {sample.name: sample.path.read_bytes() for sample in SAMPLES}
POINTERS = DATA["function_pointers"]
RICH = link(load(POINTERS), Patch(variables=(NewVariable("zeros", 64), NewVariable("ones", 4, 4, b"\1\1\1\1"))))


def survives(data: bytes) -> bool:
    """Whether it loads; then it is also patched, and the result must load or be refused."""
    try:
        obj = load(data)
        if obj.kernels:
            kernel = NewKernel("new", "new", obj.kernels[0].descriptor, obj.kernels[0].name)
            patched = link(obj, Patch((Chunk("new", bytes(8)),), (kernel,), (NewVariable("more", 8),)))
            assert len(load(patched).kernels) == len(obj.kernels) + 1
    except LuthierError as error:
        assert "\n" not in str(error) and len(str(error)) < 400
        return False
    return True


@pytest.mark.parametrize("name", ["saxpy", "function_pointers"])
def test_every_truncation_is_refused(name: str) -> None:
    data = DATA[name]
    assert survives(data)
    assert not any(survives(data[:size]) for size in range(len(data)))


def test_every_byte_of_the_headers_may_be_anything() -> None:
    obj = load(POINTERS)
    start = obj.elf.section_header_offset
    headers = [*range(64 + 56 * len(obj.segments)), *range(start, start + 64 * len(obj.sections))]
    for at in headers:
        for value in (0xFF, POINTERS[at] ^ 1):
            survives(POINTERS[:at] + bytes([value]) + POINTERS[at + 1 :])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_flipped_bits_anywhere(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(chance.choice([POINTERS, RICH]))
    for _ in range(chance.choice([1, 1, 2, 8])):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    survives(bytes(data))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_noise(noise: bytes, headed: bool) -> None:
    assert not survives(POINTERS[:20] + noise if headed else noise)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_noisy_bundles(noise: bytes) -> None:
    try:
        for member in unbundle(b"__CLANG_OFFLOAD_BUNDLE__" + noise):
            assert member.data.startswith(b"\x7fELF")
    except LuthierError as error:
        assert "\n" not in str(error)
