"""Kernel arguments as text: ``in:f32[1024]=random:1``, ``out:u32[32,16]``, ``i32=7``, ``null``.

In: one string per kernel argument. Out: NumPy arrays and scalars. Grammar::

    buffer = ("in" | "inout" | "out") ":" TYPE "[" N {"," N} "]" ["=" INIT]
    scalar = TYPE "=" value
    null   = "null", in a buffer's place
    INIT   = zeros | ones | arange | const:VALUE | random[:SEED[:LOW:HIGH]] | file:PATH.npy

``random`` gives floats in [0, 1), integers in [0, 2**31) or up to the type's maximum, from NumPy's default_rng.
"""

from __future__ import annotations

import io
import math
import re
from enum import Enum
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from luthier_py.base.errors import Invalid, one_line
from luthier_py.base.records import dataclass
from luthier_py.base.storage import open_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "f16": "<f2",
        "f32": "<f4",
        "f64": "<f8",
        "i8": "<i1",
        "i16": "<i2",
        "i32": "<i4",
        "i64": "<i8",
        "u8": "<u1",
        "u16": "<u2",
        "u32": "<u4",
        "u64": "<u8",
    }.items()
}
MAX_BUFFER_BYTES = 1 << 34
MAX_DIMENSIONS, MAX_DIGITS = 32, 18  # the first is NumPy's limit before its version 2
HEADER_BYTES = 1 << 14  # of an .npy file, that are looked at
HEADER_ERRORS = ValueError, TypeError, SyntaxError, EOFError, OverflowError, RecursionError, MemoryError, TokenError
NULL = "null"
_BUFFER = re.compile(r"(in|inout|out):(\w+)\[(\d+(?:,\d+)*)\](?:=(.+))?")
_SCALAR = re.compile(r"(\w+)=(.+)")


class Direction(Enum):
    """Whether a buffer is read back after the launch: an IN buffer is not. All are written before it."""

    IN = "in"
    INOUT = "inout"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """A device buffer and what it holds before the launch."""

    text: str
    direction: Direction
    data: NDArray[Any]

    @property
    def is_output(self) -> bool:
        """Whether it is read back after the launch."""
        return self.direction is not Direction.IN


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """An argument passed by value."""

    text: str
    data: np.generic

    @property
    def is_null(self) -> bool:
        """Whether it is the null pointer, which may stand where the kernel takes a buffer."""
        return self.text == NULL


ArgumentSpec = BufferSpec | ScalarSpec


def parse_argument(text: str) -> ArgumentSpec:
    """One specification; raises Invalid that quotes it."""
    if match := _BUFFER.fullmatch(text):
        direction, type_name, shape_text, init = match.groups()
        dtype = _dtype(type_name, text)
        shape = _shape(shape_text.split(","), dtype, text)
        if init is None and direction != "out":
            raise Invalid(
                f"argument `{text}`: an {direction} buffer needs `=zeros|ones|arange|const:V|random[:SEED]|file:PATH`"
            )
        return BufferSpec(text, Direction(direction), _initial(init or "zeros", shape, dtype, text))
    if match := _SCALAR.fullmatch(text):
        dtype = _dtype(match[1], text)
        return ScalarSpec(text, _number(match[2], dtype, text))
    if text == NULL:
        return ScalarSpec(text, np.uint64(0))
    raise Invalid(f"argument `{text}` is not understood; write e.g. in:f32[1024]=random:1, out:f32[1024] or i32=7")


def _shape(numbers: list[str], dtype: np.dtype[Any], text: str) -> tuple[int, ...]:
    if len(numbers) > MAX_DIMENSIONS or any(len(number.lstrip("0")) > MAX_DIGITS for number in numbers):
        raise Invalid(f"argument `{text}`: at most {MAX_DIMENSIONS} dimensions, each below 10^{MAX_DIGITS}")
    shape = tuple(map(int, numbers))
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_BUFFER_BYTES:
        raise Invalid(f"argument `{text}`: buffer of {size} bytes is too large; the limit is 16 GiB")
    return shape


def _dtype(name: str, text: str) -> np.dtype[Any]:
    if name not in TYPES:
        raise Invalid(f"argument `{text}`: unknown type {name}; one of {' '.join(TYPES)}")
    return TYPES[name]


def fits(number: float, dtype: np.dtype[Any]) -> bool:
    """Whether a number is in the range of a type, its ends included; floats have the range of finite ones."""
    if dtype.kind == "f":
        return abs(number) <= float(np.finfo(dtype).max)
    return int(np.iinfo(dtype).min) <= number <= int(np.iinfo(dtype).max)


def _number(value: str, dtype: np.dtype[Any], text: str) -> np.generic:
    try:
        number: float = float(value) if dtype.kind == "f" else int(value, 0)
        if math.isfinite(number) and not fits(number, dtype):
            raise ValueError
        result: np.generic = dtype.type(number)
    except (ValueError, OverflowError):
        raise Invalid(f"argument `{text}`: {value} is not a value of that type") from None
    return result


def _initial(init: str, shape: tuple[int, ...], dtype: np.dtype[Any], text: str) -> NDArray[Any]:
    kind, _, rest = init.partition(":")
    count = int(np.prod(shape))
    if kind in ("zeros", "ones") and not rest:
        return np.zeros(shape, dtype) if kind == "zeros" else np.ones(shape, dtype)
    if kind == "arange" and not rest:
        return np.arange(count).astype(dtype).reshape(shape)
    if kind == "const":
        return np.full(shape, _number(rest, dtype, text), dtype)
    if kind == "random":
        return _random(rest, shape, dtype, text)
    if kind == "file":
        return _from_file(rest, shape, dtype, text)
    raise Invalid(
        f"argument `{text}`: unknown initial value {init}; "
        "one of zeros ones arange const:V random[:SEED[:LOW:HIGH]] file:PATH"
    )


def _random(rest: str, shape: tuple[int, ...], dtype: np.dtype[Any], text: str) -> NDArray[Any]:
    fields = rest.split(":") if rest else ["0"]
    if len(fields) not in (1, 3):
        raise Invalid(f"argument `{text}`: write random, random:SEED or random:SEED:LOW:HIGH")
    try:
        rng = np.random.default_rng(int(fields[0]))
        if dtype.kind == "f":
            low, high = (float(f) for f in fields[1:]) if len(fields) == 3 else (0.0, 1.0)
            return rng.uniform(low, high, shape).astype(dtype)
        most = min(int(np.iinfo(dtype).max), 2**31)
        first, last = (int(f, 0) for f in fields[1:]) if len(fields) == 3 else (0, most)
        return rng.integers(first, last, shape, dtype=dtype)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"argument `{text}`: {error}") from None


def _from_file(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], text: str) -> NDArray[Any]:
    """What the header says is compared before anything of that size is read."""
    try:
        with open_regular(Path(name)) as file:
            held, fortran, kind, start = _header(file.read(HEADER_BYTES))
            if kind != dtype or held != shape:
                wanted = f"{dtype}{list(shape)}"
                raise Invalid(f"argument `{text}`: {name} holds {kind}{list(held)}, not {wanted}")
            file.seek(start)
            data = np.fromfile(file, dtype, math.prod(shape))
    except (OSError, ValueError) as error:
        raise Invalid(f"argument `{text}`: cannot read {name}: {one_line(error)}") from None
    count = math.prod(shape)
    if data.size != count:
        raise Invalid(f"argument `{text}`: cannot read {name}: it ends after {data.size} of {count} elements")
    return np.ascontiguousarray(data.reshape(shape, order="F" if fortran else "C"))


def _header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order, type and the data's offset of an .npy file; ValueError for whatever is no such thing."""
    file = io.BytesIO(head)
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError("it is no .npy file of version 1 or 2")
    try:
        shape, fortran, kind = readers[version](file)
    except HEADER_ERRORS as error:
        raise ValueError(f"its header is broken: {' '.join(str(error).split())[:100]}") from None
    return shape, fortran, kind, file.tell()
