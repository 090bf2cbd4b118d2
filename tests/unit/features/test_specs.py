"""Kernel arguments as text."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator.interface.arguments import POINTERS
from luthier_py.features.run.launch import check_arguments
from luthier_py.features.run.launched import parse_dim
from luthier_py.features.run.specs import TYPES, BufferSpec, Direction, ScalarSpec, parse_argument
from luthier_py.samples import sample


@pytest.mark.parametrize("text, direction, shape, first", [
    ("in:f32[8]=ones", Direction.IN, (8,), 1.0),
    ("inout:u32[2,3]=arange", Direction.INOUT, (2, 3), 0),
    ("out:f64[4]", Direction.OUT, (4,), 0.0),
    ("out:i8[4]=const:-3", Direction.OUT, (4,), -3),
    ("in:u16[4]=const:0xffff", Direction.IN, (4,), 65535),
])
def test_buffers(text, direction, shape, first):
    argument = parse_argument(text)
    assert isinstance(argument, BufferSpec) and argument.direction is direction
    assert argument.data.shape == shape and argument.data.ravel()[0] == first
    assert argument.is_output == (direction is not Direction.IN)


def test_arange_counts_through_rows():
    assert parse_argument("in:i32[2,3]=arange").data.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_random_is_numpy_s_and_repeatable():
    floats = parse_argument("in:f32[100]=random:5").data
    assert np.array_equal(floats, np.random.default_rng(5).uniform(0, 1, 100).astype(np.float32))
    assert np.array_equal(floats, parse_argument("in:f32[100]=random:5").data)
    small = parse_argument("in:u8[1000]=random:1:10:20").data
    assert small.min() == 10 and small.max() == 19
    for name, most in (("u8", 255), ("i16", 2**15 - 1), ("u64", 2**31)):
        assert most // 2 < parse_argument(f"in:{name}[1000]=random").data.max() < most
    signed = parse_argument("in:f64[1000]=random:1:-2:2").data
    assert -2 <= signed.min() < 0 < signed.max() < 2


def test_file(tmp_path):
    data = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.save(tmp_path / "x.npy", data)
    assert np.array_equal(parse_argument(f"in:i16[2,3]=file:{tmp_path}/x.npy").data, data)
    with pytest.raises(Invalid, match="holds int16"):
        parse_argument(f"in:i32[2,3]=file:{tmp_path}/x.npy")
    (tmp_path / "x.npy").write_bytes(b"no array")
    with pytest.raises(Invalid, match="cannot read"):
        parse_argument(f"in:i16[2,3]=file:{tmp_path}/x.npy")


def test_pickled_files_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(Invalid, match="holds object"):
        parse_argument(f"in:i32[1]=file:{tmp_path}/o.npy")


@pytest.mark.parametrize("text, value", [
    ("i32=-7", -7), ("u64=0xffffffffffffffff", 2**64 - 1), ("f32=0.5", 0.5), ("f16=inf", float("inf")),
])
def test_scalars(text, value):
    argument = parse_argument(text)
    assert isinstance(argument, ScalarSpec) and argument.data == value
    assert argument.data.dtype == TYPES[text.partition("=")[0]] and not argument.is_null


def test_no_buffer() -> None:
    argument = parse_argument("null")
    assert isinstance(argument, ScalarSpec) and argument.is_null and argument.data.tobytes() == bytes(8)


@pytest.mark.parametrize("name", [name for name, dtype in TYPES.items() if dtype.kind == "f"])
def test_the_greatest_float_fits_and_no_greater_one(name: str) -> None:
    greatest = float(np.finfo(TYPES[name]).max)
    assert all(parse_argument(f"{name}={sign * greatest!r}").data == sign * greatest for sign in (1, -1))
    for sign in (1, -1) if name != "f64" else ():
        with pytest.raises(Invalid, match="not a value of that type"):
            parse_argument(f"{name}={sign * greatest * (1 + 2**-11)!r}")


def test_the_largest_buffer_is_what_the_error_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ("17179869185", "65536,65536,5", "2147483649,8"):
        with pytest.raises(Invalid, match="too large; the limit is 16 GiB"):
            parse_argument(f"in:u8[{shape}]=zeros")
    monkeypatch.setattr("luthier_py.features.run.specs.MAX_BUFFER_BYTES", 4096)
    assert parse_argument("in:u32[32,32]=zeros").data.nbytes == 4096
    with pytest.raises(Invalid, match="too large"):
        parse_argument("in:u8[4097]=zeros")


@given(st.sampled_from(sorted(TYPES)), st.integers(-(2**70), 2**70))
def test_integers_fit_or_are_refused(name, value):
    if TYPES[name].kind == "f":
        fit = abs(value) <= float(np.finfo(TYPES[name]).max)
    else:
        fit = int(np.iinfo(TYPES[name]).min) <= value <= int(np.iinfo(TYPES[name]).max)
    if fit:
        assert parse_argument(f"{name}={value}") is not None
    else:
        with pytest.raises(Invalid):
            parse_argument(f"{name}={value}")


@given(st.text(max_size=30))
def test_any_text_is_an_argument_or_one_clear_line(text):
    try:
        parse_argument(text)
    except Invalid as error:
        assert "argument" in error.message


@pytest.mark.parametrize("text", [
    "in:f32[8]", "in:f32[]=ones", "in:f32[-1]=ones", "in:f33[1]=ones", "both:f32[1]=ones", "in:f32[1]=random:x",
    "in:f32[1]=random:1:2", "in:u8[4]=random:1:5:5", "in:u8[1]=const:256", "f32=", "=", "in:f64[99999999999]=zeros",
    "in:f32[0,9999999999999999999]=zeros", f"in:f32[{'9' * 5000}]=zeros",
])
def test_refused(text):
    with pytest.raises(Invalid):
        parse_argument(text)


def test_dimensions():
    assert parse_dim("7", "--grid") == (7, 1, 1)
    assert parse_dim("0x10,2,3", "--block") == (16, 2, 3)
    assert parse_dim("4x2", "--grid") == (4, 2, 1) and parse_dim("10x2", "--grid") == (10, 2, 1)
    assert parse_dim("0x10", "--grid") == (16, 1, 1) and parse_dim("0x10x2", "--grid") == (16, 2, 1)
    for bad in ("", "0", "-1", "1,2,3,4", "a", "1,,2", "99999999999"):
        with pytest.raises(Invalid, match="--grid"):
            parse_dim(bad, "--grid")


def npy(header: bytes, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<I", len(header)) + header + data


@pytest.mark.parametrize("content, said", [
    (b"", "cannot read"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", bytes(12)), "it ends after 3 of 4 elements"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"), "holds float32"),
    (npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }"), "holds float32"),
    (npy(b"{'descr': 'O', 'fortran_order': False, 'shape': (4,), }"), "holds object"),
    (npy(b"{" * 5000), "its header is broken"),
    (npy(b"(" * 200 + b")" * 200), "its header is broken"),
    (npy(b"{'descr': '<f4', 'fortran_order': 3, 'shape': (4,), }"), "its header is broken"),
    (npy(b"{'descr': 3, 'fortran_order': False, 'shape': (4,), }"), "its header is broken"),
    (npy(b"{'descr': [('a',)], 'fortran_order': False, 'shape': (4,), }"), "its header is broken"),
    (npy(b" ", version=b"\3\0"), "version 1 or 2"),
    (b"\x93NUMPY\2\0" + struct.pack("<I", 0xFFFF_FFFF), "its header is broken"),
    (b"PK\3\4" + bytes(100), "cannot read"),
])
def test_broken_files(tmp_path, content, said):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(Invalid, match=said) as caught:
        parse_argument(f"in:f32[4]=file:{tmp_path}/x.npy")
    assert "\n" not in str(caught.value)


def test_files_without_an_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(Invalid, match="no regular file"):
            parse_argument(f"in:f32[4]=file:{path}")
    with (tmp_path / "sparse.npy").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Invalid, match="cannot read"):
        parse_argument(f"in:f32[4]=file:{tmp_path}/sparse.npy")


def test_files_in_fortran_s_order(tmp_path):
    data = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "x.npy", data)
    assert np.array_equal(parse_argument(f"in:f32[2,3]=file:{tmp_path}/x.npy").data, data)


@settings(deadline=None)
@given(st.data())
def test_damaged_headers_are_one_clear_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "x.npy"
    np.save(path, np.zeros(4, np.float32))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        assert parse_argument(f"in:f32[4]=file:{path}").data.shape == (4,)
    except Invalid:
        pass


WORDS = st.sampled_from([
    "in:", "out:", "inout:", "f32", "u8", "i64", "f16", "[", "]", "4", "0", "9" * 30, ",", "=", "zeros", "arange",
    "const:", "random", ":", "1e400", "-1", "nan", "inf", "0x", "file:", "\0", "/", "é",
])  # fmt: skip


@settings(max_examples=500)
@given(st.lists(WORDS, max_size=9).map("".join).filter(lambda text: "[4,4,4" not in text and "[44" not in text))
def test_any_text_is_an_argument_or_one_clear_error(text):
    try:
        parse_argument(text)
    except Invalid as error:
        assert str(error)


def test_null_stands_for_a_buffer_alone() -> None:
    record = load(sample("vector_add").path.read_bytes()).kernel("vector_add")
    kinds = [arg.value_kind in POINTERS for arg in record.own_args]
    given = [parse_argument("null" if is_buffer else "u32=1") for is_buffer in kinds]
    check_arguments(record, given)
    for number, is_buffer in enumerate(kinds):
        wrong = [*given[:number], parse_argument("u64=0" if is_buffer else "null"), *given[number + 1:]]
        with pytest.raises(Invalid, match=f"argument {number} is a {'buffer' if is_buffer else 'scalar'}"):
            check_arguments(record, wrong)
