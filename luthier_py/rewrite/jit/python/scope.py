"""What is known of one function while its body is compiled: its locals, and which values may differ between lanes.

A value is uniform when all lanes that are active see the same one. A local that is not declared differs when it is
given a value that differs, or when it is assigned in another *region* than the one it was made in: a region is code
that only some of the active lanes run (a branch or loop whose condition differs). Whether a local differs is needed
before all its assignments are seen, so a function is compiled again until nothing new is found: `Differs` only grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from luthier_py.base.records import dataclass, field
from luthier_py.isa import InstructionSet
from luthier_py.rewrite.jit.python.arrays import LocalArray
from luthier_py.rewrite.jit.python.builder import Builder, IrBlock
from luthier_py.rewrite.jit.python.source import Source
from luthier_py.rewrite.tool.cpp.device_ir import Depth
from luthier_py.rewrite.tool.hooks.hook import Device, Signature
from luthier_py.rewrite.tool.hooks.intrinsic import Value
from luthier_py.rewrite.tool.hooks.types import LaneType, Type
from luthier_py.rewrite.tool.records.channel import ChannelType, RecordType, channel_type

Key = tuple[int, object]  # number of the inlined call, and a local's name or a loop's place


@dataclass(slots=True)
class Differs:
    """Locals, results and loops that differ between lanes (mutable: grows)."""

    keys: set[Key] = field(default_factory=set)
    grew: bool = False

    def add(self, key: Key) -> None:
        """Note that the value of ``key`` differs between lanes; ``grew`` says that the hook is to be compiled once
        more."""
        self.grew = self.grew or key not in self.keys
        self.keys.add(key)


@dataclass(slots=True)
class Local:
    """A local variable: its address, its type, and the region it was made in."""

    type: Type
    slot: str
    region: int
    declared: Type | LaneType | None  # a Type: one for the wave. None: differs if what it is given does


@dataclass(slots=True)
class OpenLoop:
    """A loop that is being compiled."""

    key: Key
    region: int          # of its body
    next: IrBlock        # the target of continue
    done: IrBlock        # the target of break
    exits: list[set[str]] = field(default_factory=list)  # locals that have a value, for each way to ``done``


@dataclass(slots=True)
class Scope:
    """One function body, the hook's own or one inlined call (mutable)."""

    source: Source
    signature: Signature
    number: int
    region: int
    done: IrBlock
    results: tuple[str, ...]  # addresses of the results
    arrays: dict[str, LocalArray] = field(default_factory=dict)
    locals: dict[str, Local] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)  # locals that surely have a value here
    loops: list[OpenLoop] = field(default_factory=list)
    root: int = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.region

    def key(self, name: object) -> Key:
        """A key for Differs, of a local by name, or of a loop by line and column, in this function or inlined call."""
        return self.number, name

    def result_key(self, index: int) -> Key:
        """A key for Differs, of result number ``index`` of this function or inlined call."""
        return self.number, ("result", index)


@dataclass(slots=True)
class Levelled:
    """Device functions that call themselves: names and texts in LLVM's module, how deep they go (mutable: grows)."""

    names: dict[Device, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    depths: dict[str, Depth] = field(default_factory=dict)


@dataclass(slots=True)
class Context:
    """What all functions of one hook share."""

    ir: Builder
    differs: Differs
    isa: InstructionSet
    single_lane: bool  # the hook runs in one lane: nothing can differ
    numbers: Iterator[int]
    regions: Iterator[int]
    printing: Value | None = None  # the channel for what is printed
    levelled: Levelled = field(default_factory=Levelled)
    channels: dict[RecordType, ChannelType] = field(default_factory=dict)
    """What is known of channels that bitcode is given, by what they send."""

    def gives_to_bitcode(self, values: Sequence[Value]) -> None:
        """Note channels among ``values``, which a call gives to bitcode; where several send one record, only the record
        is known of them."""
        for value in values:
            if isinstance(value.type, ChannelType):
                known = self.channels.setdefault(value.type.record, value.type)
                if known != value.type:  # any of several
                    self.channels[value.type.record] = channel_type(value.type.record)


def context(ir: Builder, differs: Differs, isa: InstructionSet, single_lane: bool) -> Context:
    """What a hook is compiled in, at its beginning: inlined calls get numbers from 0 on, regions from 1 on."""
    return Context(ir, differs, isa, single_lane, count(), count(1))
