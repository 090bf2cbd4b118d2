"""A clone as it is linked: all of its instructions, the application's and inserted ones, and the ways between them.

In: a clone, and what was inserted in it. Out: Linked. Invariant: instructions are numbered by address; OUTSIDE is
before entries and behind calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.base.records import dataclass
from luthier_py.isa import Inst, OpFlag
from luthier_py.isa.encoding.scan import Array
from luthier_py.proof.application import Clone
from luthier_py.proof.code import FILLER

OUTSIDE = -1


@dataclass(eq=False)
class Linked:
    """``kind`` says of each instruction which of ``insts`` it is; those that are inserted have kinds of their own:
    ``added``. Where others stand for the application's, all count as inserted: what they owe each other, too, may have
    lost its distance. ``called``: other code may have run before its first one; where a wave begins none has."""

    name: str
    pcs: Array
    kind: Array
    insts: Sequence[Inst]
    inserted: Array
    added: tuple[Inst, ...]
    called: bool

    def __len__(self) -> int:
        return len(self.pcs)

    @cached_property
    def kinds(self) -> list[int]:
        """``kind`` as a list, which is faster to index."""
        found: list[int] = self.kind.tolist()
        return found

    @cached_property
    def new(self) -> list[int]:
        """Places of inserted instructions."""
        found: list[int] = np.flatnonzero(self.inserted).tolist()
        return found

    def inst(self, at: int) -> Inst:
        """Instruction number ``at``, the application's or an inserted one (see ``inserted``)."""
        return self.insts[self.kinds[at]]

    @cached_property
    def flags(self) -> Array:
        """Bits of OpFlag of each instruction."""
        found: Array = np.array([inst.op.flags.value for inst in self.insts], np.int64)[self.kind]
        return found

    def those(self, flags: OpFlag) -> Array:
        """Of which instructions the row has any of ``flags``."""
        found: Array = self.flags & flags.value != 0
        return found

    @cached_property
    def used(self) -> set[int]:
        """Kinds of inserted instructions."""
        return set(np.unique(self.kind[self.inserted]).tolist())

    @cached_property
    def targets(self) -> dict[int, int]:
        """Where branches go."""
        goals = [inst.branch_target(0) for inst in self.insts]
        jumping = np.array([goal is not None for goal in goals], bool)
        distances = np.array([goal or 0 for goal in goals], np.int64)
        sources = np.flatnonzero(jumping[self.kind])
        addresses = self.pcs[sources] + distances[self.kind[sources]]
        found = np.searchsorted(self.pcs, addresses).clip(max=len(self) - 1)
        there = self.pcs[found] == addresses
        return dict(zip(sources[there].tolist(), found[there].tolist(), strict=True))

    @cached_property
    def sources(self) -> dict[int, list[int]]:
        """Which branches come to a place."""
        found = defaultdict(list)
        for source, target in self.targets.items():
            found[target].append(source)
        return found

    @cached_property
    def calls(self) -> set[int]:
        """Numbers of calls; the way to what follows one begins at OUTSIDE."""
        return set(np.flatnonzero(self.those(OpFlag.CALL)).tolist())

    @cached_property
    def falls(self) -> list[bool]:
        """Whether what comes next in the code may run next."""
        found: list[bool] = (~self.those(OpFlag.TERMINATOR) | self.those(OpFlag.CONDITIONAL)).tolist()
        return found

    @cached_property
    def parting(self) -> list[int]:
        """Places from which control may go elsewhere than to what comes next."""
        return [at for at, falls in enumerate(self.falls) if not falls or at in self.targets or at in self.calls]

    @cached_property
    def meeting(self) -> list[int]:
        """Places to which it may come from elsewhere than from what comes before."""
        behind = (at + 1 for at in self.parting if at in self.calls or not self.falls[at])
        return sorted({0, *behind, *self.sources})

    def after(self, at: int) -> list[int]:
        """The successors of an instruction."""
        if at == OUTSIDE:
            first = (0,) if self.called else ()
            return [start for start in (*first, *(call + 1 for call in self.calls)) if start < len(self)]
        if at in self.calls:
            return []
        found = [at + 1] if self.falls[at] and at + 1 < len(self) else []
        return [*found, self.targets[at]] if at in self.targets else found

    def before(self, at: int) -> list[int]:
        """Where it comes from."""
        found = [source for source in self.sources.get(at, ()) if source not in self.calls]
        if at and at - 1 not in self.calls:
            return [*found, at - 1] if self.falls[at - 1] else found
        return [*found, OUTSIDE] if at or self.called else found


def link_clone(clone: Clone, inserted: Iterable[tuple[int, Inst]], called: bool) -> Linked:
    """``inserted``: addresses and instructions; one may be there twice. CheckFailed if two share bytes, or if
    there are others than those, and nothing."""
    insts, changed, numbers = clone.code.insts, sorted(clone.changed), dict[tuple[Inst, bool], int]()

    def number(inst: Inst, added: bool) -> int:
        return numbers.setdefault((inst, added), len(insts) + len(numbers))

    new, own = dict(inserted), clone.code.kind.copy()
    own[changed] = [number(clone.instruction(at)[0], False) for at in changed]
    kinds = [number(inst, True) for inst in new.values()]
    pcs = np.concatenate([np.array(clone.places, np.int64), np.fromiter(new, np.int64, len(new))])
    order = np.argsort(pcs, kind="stable")
    found = Linked(clone.function.name, pcs[order], np.concatenate([own, np.array(kinds, np.int64)])[order],
                   [*insts, *(inst for inst, _ in numbers)], (order >= len(own)) | bool(clone.function.instead),
                   tuple(dict.fromkeys(new.values())), called)
    sizes = np.array([inst.size_bytes for inst in found.insts], np.int64)[found.kind]
    shared = np.flatnonzero(found.pcs[:-1] + sizes[:-1] > found.pcs[1:])
    if len(shared):
        raise CheckFailed("the patch could change the application: control comes into the middle of an instruction",
                          Location(found.name, int(found.pcs[shared[0] + 1])))
    bare = np.ones(len(clone.data) // 4, bool)
    for dword in range(int(sizes.max(initial=0)) // 4):
        bare[(found.pcs[sizes > 4 * dword] - clone.base) // 4 + dword] = False
    for at in np.flatnonzero(bare & (np.frombuffer(clone.data[:4 * len(bare)], "<u4") != FILLER))[:1].tolist():
        raise CheckFailed("the clone has code to which nothing comes", Location(found.name, clone.base + 4 * at))
    return found
