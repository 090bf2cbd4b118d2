"""Instructions of translated code, decoded at their first use.

In: the code that translations were made of, and where its instructions begin. Out: a mapping from addresses to
instructions. Invariant: an instruction is what was translated, whatever memory holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from luthier_py.isa.encoding.instruction import Inst

MOST_BYTES = 24
"""Of an instruction, on every target, and more."""


class KnownCode(Mapping[int, Inst]):
    """Mutable: grows, and nothing in it changes."""

    def __init__(self, decode: Callable[[bytes], Inst]) -> None:
        self._decode = decode
        self._insts: dict[int, Inst] = {}
        self._places: dict[int, tuple[bytes, int]] = {}  # of what may not be decoded yet: code, and the offset in it

    def add(self, pc: int, inst: Inst) -> None:
        self._insts[pc] = inst

    def add_run(self, start: int, data: bytes, pcs: Iterable[int]) -> None:
        """``pcs``: where instructions begin in ``data``, whose address is ``start``."""
        self._places.update((pc, (data, pc - start)) for pc in pcs)

    def __getitem__(self, pc: int) -> Inst:
        inst = self._insts.get(pc)
        if inst is None:
            data, offset = self._places[pc]
            inst = self._insts[pc] = self._decode(data[offset : offset + MOST_BYTES])
        return inst

    def __contains__(self, pc: object) -> bool:
        return pc in self._insts or pc in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._insts.keys() | self._places.keys()))

    def __len__(self) -> int:
        return len(self._insts.keys() | self._places.keys())
