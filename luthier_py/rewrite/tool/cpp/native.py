"""Device functions that are LLVM bitcode: what hooks and device functions have for a body beside Python.

In: what is known of a function of a compiled unit. Out: Native. Invariant: a function is called by the types in which
LLVM takes and gives its values, which clang's calling convention has made of the declared ones.
"""

from __future__ import annotations

from typing import Protocol

from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool.cpp.device_ir import DeviceIr
from luthier_py.rewrite.tool.records.channel import RecordType


class DeviceCode(Protocol):
    """Bitcode from a source, for each processor."""

    def ir(self, processor: str, wave_size: int) -> DeviceIr:
        """The parts of the whole unit's LLVM text."""

@dataclass(frozen=True, slots=True)
class Sender:
    """The function by which a source sends records of one type; room jit writes its code. ``offsets``: of the fields
    in the structure that it gets."""

    symbol: str
    record: RecordType
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """Where constants of a source are in the table that has all of it. ``text``: LLVM's, for which this is so."""

    symbol: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Native:
    """One function; compared by identity."""

    code: DeviceCode
    symbol: str
    name: str                 # as its source has it
    place: str                # file:line
    takes: tuple[str, ...]    # LLVM's types of its parameters
    gives: str                # and of its result
    offsets: tuple[int, ...] = ()
    """Bytes at which the results are in what it gives, where that is a structure."""
    captures: tuple[str, ...] = ()
    """Symbols of the variables that it names, or what it calls does."""
    senders: tuple[Sender, ...] = ()
    """What it pushes records with, or what it calls does."""
    tables: tuple[PlacedTable, ...] = ()
    """Constants that it reads, or what it calls does, and that no registers can hold."""
