"""The result of injection: chunks and kernels to link, the address of each instruction, what became of each
kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from luthier_py.base.records import dataclass, field
from luthier_py.binary.patch import Chunk, NewKernel, NewVariable
from luthier_py.program.ir import Function, Instr
from luthier_py.proof.claim import Claim
from luthier_py.rewrite.inject.cloned import ClonedKernel
from luthier_py.rewrite.inject.items import Allotted
from luthier_py.rewrite.tool import Insertion, Refusal


class Offsets(Mapping[Instr, int]):
    """Where instructions are, from pieces that lie some bytes behind where they lay; computed at first use."""

    def __init__(self, pieces: Sequence[tuple[Iterable[Instr], int]]) -> None:
        self._pieces = pieces

    @cached_property
    def _found(self) -> dict[Instr, int]:
        return {instr: instr.pc + by for instrs, by in self._pieces for instr in instrs}

    def __getitem__(self, instr: Instr) -> int:
        return self._found[instr]

    def __iter__(self) -> Iterator[Instr]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Which bytes of a chunk stand for which original instruction; offsets count from the chunk's start."""

    function: Function
    chunk: str
    instructions: Mapping[Instr, int]
    labels: dict[int, int]         # original block address -> offset of the first item of its clone


@dataclass(frozen=True, slots=True)
class Patched:
    """What `link` needs, what `proof` checks, and what reports show."""

    chunks: tuple[Chunk, ...]
    kernels: tuple[NewKernel, ...]
    variables: tuple[NewVariable, ...]
    maps: tuple[SourceMap, ...]
    claim: Claim
    report: tuple[ClonedKernel, ...]
    refused: tuple[Refusal, ...] = ()
    calls: Mapping[str, Sequence[tuple[Insertion, Allotted]]] = field(default_factory=dict)
    """Of each chunk those that edits in it are numbered by, and what they got."""
