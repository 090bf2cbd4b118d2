"""Where calls go: the first of an insertion's sites that has registers enough.

In: insertions, one after the other. Out: their items, and the registers that they write on purpose, by instruction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping

from luthier_py.base.errors import OutOfRegisters
from luthier_py.isa import InstructionSet, Reg, RegFile
from luthier_py.program.analysis import depends_on_mode
from luthier_py.rewrite.inject.allocate import Policy
from luthier_py.rewrite.inject.call import Pattern, call, edit_of
from luthier_py.rewrite.inject.fragment import Fragment
from luthier_py.rewrite.inject.items import Allotted, AssignedLocation, Item, PersistentValue, PrivateCell
from luthier_py.rewrite.inject.sites import Needs, Site, Sites
from luthier_py.rewrite.jit import PayloadKey, payload_key
from luthier_py.rewrite.tool import Entry, Insertion, Place, WaveVariable

Patterns = dict[Hashable, list[Pattern]]  # by policy and circumstances


class Fragments(dict[PayloadKey, Fragment]):
    """Hooks, and the patterns of their calls (mutable): components in which the tool keeps its own in the same places
    have them together."""

    def __init__(self, fragments: Mapping[PayloadKey, Fragment]) -> None:
        super().__init__(fragments)
        self.patterns: dict[Hashable, Patterns] = {}


class Calls:
    """The calls of one component (mutable: collects them)."""

    def __init__(
        self, isa: InstructionSet, sites: Sites, locations: Mapping[PersistentValue, AssignedLocation],
        fragments: Fragments, frame: int = 0,
    ) -> None:
        """``frame``: where stacks of hooks begin, in a lane's private memory."""
        self.frame = frame
        self.isa, self.sites, self.locations, self.fragments = isa, sites, locations, fragments
        self.items: dict[Place, dict[int, list[Item]]] = {place: defaultdict(list) for place in Place}
        self.numbers = {key: number for number, key in enumerate(fragments)}
        self.made: list[tuple[Insertion, Site, PayloadKey]] = []  # by number
        self.allotted: list[Allotted] = []  # to them
        self.private = range(0)  # bytes of a lane's memory that are for that
        self.cells = 0  # dwords of private memory in which registers are put aside
        self.needs: dict[Hashable, Needs] = {}
        self.patterns: dict[Needs, Patterns] = {}
        self.kept = frozenset(locations.items()), frame

    @property
    def told(self) -> list[tuple[Insertion, Allotted]]:
        """Each call and its registers, by number."""
        return [(made[0], allotted) for made, allotted in zip(self.made, self.allotted, strict=True)]

    def add(self, insertion: Insertion) -> None:
        """Choose the site of one insertion and add the items of its call there. Raises OutOfRegisters where no site has
        registers enough, EditConflict where the hook cannot stand at any."""
        key, arguments = payload_key(insertion), insertion.runtime_args
        fragment, form = self.fragments[key], (key, arguments, insertion.into)
        if form not in self.needs:
            kept = [self.locations[v] for v in (*arguments, *insertion.into) if isinstance(v, (Entry, WaveVariable))]
            floats = bool(self.sites.float_fields) and any(map(depends_on_mode, fragment.payload.instrs))
            slots = (*fragment.payload.params, *fragment.payload.results)  # of no code at all they are moved
            vector = (fragment.vector or floats or not all(isinstance(location, Reg) for location in kept)
                      or any(slot.reg.file is not RegFile.SGPR for slot in slots))
            needs = self.needs[form] = self.sites.needs(insertion, arguments, fragment.payload, vector)
            self.patterns[needs] = self.fragments.patterns.setdefault((form, self.kept), {})
        site, items, allotted = self.place_call(insertion, fragment, self.needs[form])
        self.items[site.place][site.instr.pc] += items
        self.made.append((insertion, site, key))
        self.allotted.append(allotted)

    def place_call(self, insertion: Insertion, fragment: Fragment, needs: Needs) -> tuple[Site, list[Item], Allotted]:
        """The first site that has registers enough, and the items there; one that needs none that cost waves, if there
        is such a site."""
        refusal: OutOfRegisters | None = None
        sites: Iterable[Site] = self.sites.of(insertion, needs)
        tried: list[Site] = []
        for policy in self.sites.policies:
            among, tried = (tried or sites), []
            for site in among:
                tried.append(site)
                if policy.waits and not site.pending:
                    continue
                here = self.sites.once_loaded(site, needs) if policy.waits else site
                try:
                    items, allotted = self.emit_call(insertion, fragment, needs, here, policy)
                    return here, items, allotted
                except OutOfRegisters as error:
                    refusal = refusal if len(tried) > 1 else error
        assert refusal is not None
        raise refusal

    def emit_call(
        self, insertion: Insertion, fragment: Fragment, needs: Needs, site: Site, policy: Policy
    ) -> tuple[list[Item], Allotted]:
        """The items of a call at one site: as others have it that are like it there."""
        edit, free = edit_of(insertion, site, len(self.made)), site.free & policy.registers
        like = self.patterns[needs].setdefault((policy.name, site.circumstances), [])
        for pattern in like:
            if pattern.fits(free):
                return pattern.again(self.isa, fragment, insertion, edit), pattern.allotted
        made = call(self.isa, insertion, fragment, site, policy, self.locations, edit, self.frame)
        self.cells = max(self.cells, sum(isinstance(slot, PrivateCell) for slot in policy.slots[: made.slots]))
        if not policy.borrows and not made.carries:
            like.append(made)
        return made.items, made.allotted
