"""Channels: records that device code pushes while a kernel runs, and that the tool receives at the same time.

In: a class whose annotations are device types. Out: a RecordType, which says where each field lies in a slot of the
ring, and the Channel that a tool declares. How a slot gets from the device to the tool is `tool.ring`'s to say.
Invariant: fields lie aligned, in the order in which they are written; device and host ask the same RecordType.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from luthier_py.base.errors import HookError, Invalid
from luthier_py.base.late_modules import np
from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.types import BF16, BOOL, U64, LaneType, Pointer, Scalar
from luthier_py.rewrite.tool.variables import Variable

if TYPE_CHECKING:
    from numpy.typing import NDArray

R = TypeVar("R")

NUMBER_AT, LAUNCH_AT, MASK_AT = 0, 4, 8
"""In a slot: what says that it is whole, the launch's number, and in records of a wave the lanes that took part."""
_HEADER_BYTES, _WAVE_HEADER_BYTES = 8, 16
LANES = 64
"""Entries of a field that each lane has for itself, whatever the wave's size."""
CELL_WORDS = 2
"""Of a channel's variable in a code object: the address of the ring's head, the launch's number."""
RING_BYTES = 1 << 22
"""Of a ring whose capacity the tool has not chosen, at most."""


class Full(Enum):
    """What a push does that finds no room."""

    WAIT = "wait"  # until there is some
    DROP = "drop"  # the record, which is counted
    STOP = "stop"  # as DROP, and the launch is ended as soon as the host sees it


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field of a record, and where it lies."""

    name: str
    type: Scalar
    lane: bool  # one entry for each lane; else one for the record
    offset_bytes: int  # in a slot

    def __str__(self) -> str:
        return f"{self.name}: {LaneType(self.type) if self.lane else self.type}"


@dataclass(frozen=True, slots=True)
class RecordType:
    """What a channel's slots hold. ``of_wave``: one record for all lanes that push together; else one for each."""

    name: str
    fields: tuple[RecordField, ...]
    of_wave: bool
    slot_bytes: int

    def __str__(self) -> str:
        return self.name

    @property
    def slots(self) -> np.dtype[Any]:
        """A slot as NumPy sees it, its header with names that no field can have."""
        header = [("#number", "<u4", NUMBER_AT), ("#launch", "<u4", LAUNCH_AT)]
        header += [("#mask", "<u8", MASK_AT)] if self.of_wave else []
        return self._dtype([*header, *self._columns()])

    @property
    def records(self) -> np.dtype[Any]:
        """What the tool gets: the fields alone, packed. A field of each lane is an array of 64."""
        return np.dtype([(name, kind) for name, kind, _ in self._columns()])

    def _columns(self) -> list[tuple[str, Any, int]]:
        return [(f.name, (_letters(f.type), (LANES,)) if f.lane else _letters(f.type), f.offset_bytes)
                for f in self.fields]

    def _dtype(self, columns: list[tuple[str, Any, int]]) -> np.dtype[Any]:
        names, formats, offsets = zip(*columns, strict=True)
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": self.slot_bytes})

    @property
    def described(self) -> str:
        """Its name and fields."""
        return f"{self} ({', '.join(map(str, self.fields))})"

    def unpack_records(self, slots: NDArray[Any]) -> NDArray[Any]:
        """Records from slots; entries of lanes that did not take part are 0."""
        found = np.empty(len(slots), self.records)
        for field in self.fields:
            found[field.name] = slots[field.name]
        if self.of_wave:
            took = (slots["#mask"][:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1) == 1
            if not took.all():
                for field in self.fields:
                    if field.lane:
                        found[field.name][~took] = 0
        return found


@dataclass(frozen=True, slots=True)
class ChannelType(Pointer):
    """A parameter that takes a channel of these records: to the proof, an address of addresses of addresses.

    What is known of the channel that it is given, when the hook is compiled for that, is in the code."""

    record: RecordType
    capacity: int | None = None
    drops: bool | None = None

    def __str__(self) -> str:
        return f"channel[{self.record}]"


class Channel(Variable):
    """Records on their way from the device to the tool, while the kernel runs (docs/device-python.md, "Channels").

    ``record``: a class whose annotations are device types; a field ``Lane[T]`` makes it one record for the wave, with
    64 entries in that field. ``capacity``: records of the ring, a power of two, 128 at least; by default as many as go
    into 4 MiB. ``full``: "wait", "drop" (and count) or "stop" (the launch, which then is an error).
    """

    __slots__ = ("record", "capacity", "full")

    def __init__(self, record: type, capacity: int | None = None, full: str = "wait", name: str = "") -> None:
        super().__init__(U64, CELL_WORDS, name)
        self.record = record_type(record)
        expect(capacity, int, NoneType, name="capacity")
        if capacity is None:
            capacity = max(2 * LANES, 1 << (RING_BYTES // self.record.slot_bytes).bit_length() - 1)
        if capacity < 2 * LANES or capacity & (capacity - 1) or capacity > 1 << 30:
            raise Invalid(f"{caller()}: capacity={capacity}: give a power of two, {2 * LANES} to {1 << 30}")
        if full not in (policy.value for policy in Full):
            raise Invalid(f"{caller()}: full={full!r}: give one of {', '.join(policy.value for policy in Full)}")
        self.capacity, self.full = capacity, Full(full)

    @property
    def pointer(self) -> Pointer:
        return ChannelType(Pointer(Pointer(U64)), self.record, self.capacity, self.full is not Full.WAIT)

    def __getitem__(self, index: int) -> Any:
        """Refused: a channel is passed whole."""
        raise Invalid(f"{caller()}: {self} is a channel; pass it whole to a hook that takes channel[{self.record}]")

    def __repr__(self) -> str:
        return f"Channel({self.name}: {self.record})"


def channel_type(record: RecordType) -> ChannelType:
    """The type of a parameter that takes any channel of these records; its code reads capacity and policy from the
    ring's head."""
    return ChannelType(Pointer(Pointer(U64)), record)


def record_type(record: type) -> RecordType:
    """The layout of a record; Invalid where an annotation is none of the types that can be sent."""
    if not isinstance(record, type):
        raise Invalid(f"{caller()}: {record!r} is no record; give a class with annotations, as `address: u64`")
    try:
        annotations = inspect.get_annotations(record, eval_str=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise Invalid(f"{caller()}: record {record.__name__}: an annotation cannot be read: {error}") from error
    if not annotations:
        raise Invalid(f"{caller()}: record {record.__name__} has no fields; annotate them, as in `address: u64`")
    try:
        return lay_out_record(record.__name__, annotations)
    except ValueError as error:
        raise Invalid(f"{caller()}: {error}") from error


def lay_out_record(name: str, kinds: Mapping[str, object]) -> RecordType:
    """A record of fields of these types, in their order; ValueError where one cannot be sent."""
    of_wave = any(isinstance(kind, LaneType) for kind in kinds.values())
    at, fields = _WAVE_HEADER_BYTES if of_wave else _HEADER_BYTES, []
    for field, kind in kinds.items():
        lane, number = (True, kind.of) if isinstance(kind, LaneType) else (False, kind)
        if not isinstance(number, Scalar) or number in (BOOL, BF16):
            raise ValueError(f"record {name}: {field}: {getattr(kind, '__name__', kind)} cannot be sent; "
                             "give one of u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64, or Lane[...] of one")
        at = -(-at // number.align_bytes) * number.align_bytes
        fields.append(RecordField(field, number, lane, at))
        at += number.size_bytes * (LANES if lane else 1)
    return RecordType(name, tuple(fields), of_wave, -(-at // 8) * 8)


def _letters(number: Scalar) -> str:
    return str(np.dtype(number.letter).str)


if TYPE_CHECKING:

    class channel(Generic[R]):
        """The type of a channel in device code, for type checkers."""

else:

    class channel:
        """``channel[Access]``: a hook's parameter that takes a Channel(Access)."""

        def __class_getitem__(cls, record: object) -> ChannelType:
            try:
                return channel_type(record_type(record))
            except Invalid as error:
                raise HookError(error.message) from error
