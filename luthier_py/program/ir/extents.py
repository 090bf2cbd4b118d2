"""Where functions start and end, and what they are called.

In: a code object's symbols, kernels and relocations. Out: :class:`Extents`. Invariant: an extent lies in
executable bytes of the file; it is a hint for names and ends, while what *is* code only `descend` finds out.
"""

from __future__ import annotations

from bisect import bisect_right

from luthier_py.base.records import dataclass
from luthier_py.binary.loader import CodeObject, RelocationKind, SymbolType

POINTERS = (RelocationKind.RELATIVE64, RelocationKind.ABS64)  # AMDGPUUsage, "Relocation Records"


@dataclass(frozen=True, slots=True)
class Extents:
    """``starts`` ascend; ``sizes`` and ``names`` belong to them, a size of 0 being unknown."""

    text: tuple[range, ...]
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    names: tuple[str, ...]
    kernels: frozenset[int]   # entries of kernels
    pointers: frozenset[int]  # functions whose address is in the object's data

    def text_at(self, address: int) -> range:
        """The executable bytes around ``address``; an empty range if there are none."""
        return next((part for part in self.text if address in part), range(0))

    def end(self, address: int) -> int:
        """Where a function that starts at ``address`` must have ended: its symbol's, or the next function's start."""
        at = bisect_right(self.starts, address) - 1
        text = self.text_at(address)
        if at >= 0 and self.starts[at] == address and self.sizes[at]:
            return min(address + self.sizes[at], text.stop)
        return min([start for start in self.starts[at + 1 : at + 2]] + [text.stop])

    def name(self, address: int) -> str:
        """Name of the function that starts at ``address``; where neither a symbol nor a kernel says it,
        ``function_1a00`` after the address."""
        at = bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 and self.starts[at] == address else f"function_{address:x}"

    def is_function(self, address: int) -> bool:
        """Whether a pointer to ``address`` is a pointer to a function: it starts one, or nothing says what is there."""
        if address in self.kernels or not self.text_at(address):
            return False
        at = bisect_right(self.starts, address) - 1
        return at < 0 or self.starts[at] == address or address >= self.starts[at] + self.sizes[at] > self.starts[at]


def find_extents(obj: CodeObject) -> Extents:
    """Functions by their symbols, and kernels by their descriptors."""
    text = obj.text_ranges
    known: dict[int, tuple[int, str]] = {}
    for symbol in obj.symbols:
        if symbol.type == SymbolType.FUNC and symbol.defined and any(symbol.address in part for part in text):
            size, name = known.get(symbol.address, (0, symbol.name))
            known[symbol.address] = max(size, symbol.size), name
    for kernel in obj.kernels:
        size, _ = known.get(kernel.entry, (0, ""))
        known[kernel.entry] = size, kernel.name
    starts = tuple(sorted(known))
    extents = Extents(
        text, starts, tuple(known[s][0] for s in starts), tuple(known[s][1] for s in starts),
        frozenset(kernel.entry for kernel in obj.kernels), frozenset(),
    )
    values = {
        relocation.addend + (relocation.symbol.address if relocation.symbol is not None else 0)
        for relocation in obj.relocations if relocation.kind in POINTERS
    }
    pointers = frozenset(value for value in values if extents.is_function(value))
    return Extents(text, starts, extents.sizes, extents.names, extents.kernels, pointers)
