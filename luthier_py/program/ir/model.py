"""The IR: a code object's code as functions, blocks and instructions, at its own addresses.

In: nothing; `lift` builds these. Out: read-only data for everybody. Invariant: an Instr is a view, equal to another by
where it is, because its place *is* the program point; the bytes of a function are those of its Instrs, and a block
is left only at its end (calls return, so they do not end one).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, overload

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, field
from luthier_py.isa.properties.classes import InstructionClass, class_of

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject, KernelRecord
    from luthier_py.isa import Inst, InstructionSet, MemoryAccess, OpInfo
    from luthier_py.isa.columns import Columns


class Instr(NamedTuple):
    """One instruction at its place: the one at ``at`` of ``code``."""

    pc: int
    at: int
    code: Columns

    @property
    def inst(self) -> Inst:
        """What it is; one object for all places with the same bytes."""
        return self.code.inst(self.at)

    @property
    def op(self) -> OpInfo:
        """Its row of the target's table, for which it need not be decoded."""
        return self.code.distinct.op(self.code.kinds[self.at])

    @property
    def raw(self) -> bytes:
        return self.inst.raw

    @property
    def end(self) -> int:
        """Address of what follows."""
        return self.pc + self.code.size(self.at)

    @property
    def kind(self) -> InstructionClass:
        """What carries it out, or what it does to the wave."""
        return class_of(self.op)

    @property
    def memory(self) -> MemoryAccess | None:
        """What memory it accesses, how many bytes of it, and how the address is made; None where it does not."""
        from luthier_py.isa import memory_access  # meanings take long to import

        return memory_access(self.inst)

    @property
    def flops(self) -> int:
        """Operations on floats in each lane: one for a sum, two for a fused multiplication and addition; of matrix
        instructions each lane's share."""
        from luthier_py.isa.semantics.readers.work import flops  # meanings take long to import

        return flops(self.op)

    @property
    def flops_by_type(self) -> Mapping[str, int]:
        """The same by the type that is computed in: f16, f32, f64; of matrix instructions ``matrix`` and A's type."""
        from luthier_py.isa.semantics.readers.work import flops_by_type  # meanings take long to import

        return flops_by_type(self.op)

    @property
    def result_types(self) -> tuple[str, ...]:
        """The types of its results: u32, i16, f64 ...; 2f16 where they are packed, b for a mask with a bit for each
        lane."""
        from luthier_py.isa.semantics.readers.work import result_types  # meanings take long to import

        return result_types(self.inst)

    def __repr__(self) -> str:
        return f"<Instr 0x{self.pc:x} {self.op.mnemonic}>"


@dataclass(frozen=True, slots=True)
class Instrs(Sequence[Instr]):
    """The instructions ``start`` to ``stop`` of ``code``; each is made when it is looked at."""

    code: Columns
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @overload
    def __getitem__(self, key: int) -> Instr: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Instr, ...]: ...
    def __getitem__(self, key: int | slice) -> Instr | tuple[Instr, ...]:
        if isinstance(key, slice):
            chosen = range(self.start, self.stop)[key]
            return tuple(_instrs(self.code, chosen))
        return instr_at(self.code, range(self.start, self.stop)[key])

    def __iter__(self) -> Iterator[Instr]:
        return _instrs(self.code, range(self.start, self.stop))

    def __contains__(self, instr: object) -> bool:
        return isinstance(instr, Instr) and instr.code is self.code and self.start <= instr.at < self.stop


def _instrs(code: Columns, places: range) -> Iterator[Instr]:
    pcs = code.pcs[places.start : places.stop : places.step] if places.step > 0 else code.pcs[list(places)]
    return map(Instr._make, zip(pcs.tolist(), places, repeat(code)))


def instr_at(code: Columns, at: int) -> Instr:
    """The instruction at place ``at`` of ``code``."""
    return Instr(int(code.pcs[at]), at, code)


class Ending(Enum):
    """How control leaves a block."""

    FALLTHROUGH = auto()  # into the next block, which others branch to
    BRANCH = auto()       # always to one place: s_branch, or s_setpc to an address built in the block
    CONDITIONAL = auto()  # to a target, or to the next block
    RETURN = auto()       # s_setpc to the return address, or to an address that nothing is known of
    TAIL_CALL = auto()    # s_setpc to the start of another function, which then returns to this one's caller
    INDIRECT = auto()     # to places that are not known
    END = auto()          # the wave is over
    NO_RETURN = auto()    # a call or trap with nothing behind it: control does not come back


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Instructions that run one after the other. ``successors``: addresses of blocks, a taken branch first."""

    address: int
    instrs: Sequence[Instr]
    successors: tuple[int, ...]
    ending: Ending

    @property
    def code(self) -> Columns:
        """Its function's."""
        return self.instrs.code if isinstance(self.instrs, Instrs) else self.instrs[0].code

    @property
    def start(self) -> int:
        """Where its first instruction is in the function's ``code``; all up to ``stop`` are its own."""
        return self.instrs.start if isinstance(self.instrs, Instrs) else self.instrs[0].at

    @property
    def stop(self) -> int:
        """Place in the function's ``code`` behind the last instruction."""
        return self.instrs.stop if isinstance(self.instrs, Instrs) else self.instrs[-1].at + 1

    @property
    def end(self) -> int:
        """First address after the block."""
        return self.instrs[-1].end


@dataclass(frozen=True, slots=True, eq=False)
class PcBuilder:
    """An address made of the PC: `s_getpc_b64`, then an add to the low half and an add with carry to the high half.

    Nothing between the three touches the pair, so literals in ``lo`` and ``hi`` can build another address. Where one
    64-bit add does it, it is both ``lo`` and ``hi``. They subtract where ``back`` says so. They may add registers that
    hold numbers: ``offset`` makes these.
    """

    getpc: Instr
    lo: Instr
    hi: Instr
    value: int
    call: Instr | None = None    # a call or tail call, when direct calls are all that the value is for
    branch: Instr | None = None  # the s_setpc to a block of the same function, when that is all the value is for
    back: bool = False
    offset: tuple[Instr, ...] = ()

    @property
    def sums(self) -> tuple[Instr, ...]:
        """All that computes the value, but for the PC: nothing else may stand there."""
        return (*self.offset, *dict.fromkeys((self.lo, self.hi)))

    @property
    def escapes(self) -> bool:
        """Whether the value may be used in other ways than to go there."""
        return self.call is None and self.branch is None


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One function, or the body of a kernel. ``blocks`` ascend; ``entries`` are where control may come in.

    ``incomplete`` says why the function must be left as it is; what is in ``blocks`` then may not be all of it.
    """

    name: str
    address: int
    kernel: bool
    isa: InstructionSet
    entries: tuple[int, ...]
    code: Columns  # its instructions by address, those of all blocks and no others
    blocks: tuple[Block, ...]
    pc_builders: tuple[PcBuilder, ...]
    incomplete: str | None = None

    @property
    def instrs(self) -> Iterator[Instr]:
        """The instructions of all blocks, block by block."""
        return (instr for block in self.blocks for instr in block.instrs)

    @property
    def end(self) -> int:
        """First address after the last block."""
        return self.blocks[-1].end if self.blocks else self.address

    @property
    def size_bytes(self) -> int:
        """The size from the first instruction to the last one, padding between them included."""
        return self.end - self.address

    def block(self, address: int) -> Block:
        """The block that covers ``address``."""
        at = bisect_right(self.blocks, address, key=lambda block: block.address) - 1
        if at < 0 or address >= self.blocks[at].end:
            raise Invalid(f"{self.name} has no block at 0x{address:x}")
        return self.blocks[at]

    def successors(self, block: Block) -> tuple[Block, ...]:
        """The blocks that control may go to from ``block``, that of a taken branch first."""
        return tuple(self.block(address) for address in block.successors)

    def predecessors(self, block: Block) -> tuple[Block, ...]:
        """The blocks that control may come from to ``block``."""
        return tuple(other for other in self.blocks if block.address in other.successors)


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """One call: s_swappc, s_call, or an s_setpc that is a tail call.

    ``targets`` are all functions that it may reach. ``unknown``: code that is not in the program may be reached
    too. ``indirect``: the address is not just built for this call, but comes from a register that could hold others.
    """

    instr: Instr
    targets: tuple[Function, ...]
    indirect: bool
    unknown: bool
    tail: bool


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One kernel. Kernels that share their code share the function."""

    name: str
    record: KernelRecord
    function: Function


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What is reachable from some kernels of a code object. ``functions`` ascend."""

    obj: CodeObject
    isa: InstructionSet
    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...]
    address_taken: frozenset[int]  # addresses of functions that function pointers may hold
    call_sites: Mapping[Function, tuple[CallSite, ...]] = field(repr=False)
    _functions: Mapping[Columns, Function] = field(repr=False)  # by their code

    def kernel(self, name: str) -> Kernel:
        """The kernel of a name; Invalid says which there are."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        known = ", ".join(sorted(kernel.name for kernel in self.kernels)[:8]) or "none"
        raise Invalid(f"{self.obj.name}: no kernel {name} was lifted; there are {len(self.kernels)}: {known}")

    def calls(self, function: Function) -> tuple[CallSite, ...]:
        """Call sites in ``function``, by address."""
        return self.call_sites[function]

    def function_of(self, instr: Instr) -> Function:
        """The function that contains an instruction of this program."""
        return self._functions[instr.code]

    def block_of(self, instr: Instr) -> Block:
        """The block that contains an instruction of this program."""
        blocks = self.function_of(instr).blocks
        return blocks[bisect_right(blocks, instr.at, key=lambda block: block.start) - 1]

    def reachable(self, function: Function) -> tuple[Function, ...]:
        """``function`` and all that it may call, directly or not; ascending."""
        found, todo = {function}, [function]
        while todo:
            callees = {callee for site in self.calls(todo.pop()) for callee in site.targets} - found
            found |= callees
            todo += callees
        return by_address(found)


def by_address(functions: Iterable[Function]) -> tuple[Function, ...]:
    """``functions`` in ascending order of their addresses."""
    return tuple(sorted(functions, key=lambda function: function.address))
