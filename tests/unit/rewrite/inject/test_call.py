"""What a call of a hook saves: special registers that are live and overwritten, and those alone."""

from __future__ import annotations

from typing import cast

import pytest

from luthier_py.base.errors import Location
from luthier_py.isa import M0, SCC, VCC, Reg, RegSet, instruction_set, sgpr, target, vgpr
from luthier_py.program.ir import Instr
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.call import Caller
from luthier_py.rewrite.inject.fragment import Fragment
from luthier_py.rewrite.inject.items import Cause, Edit, Single
from luthier_py.rewrite.inject.sites import Site
from luthier_py.rewrite.tool import Insertion, Place

ISA = instruction_set(target("gfx90a"))
SPECIAL = (sgpr(SCC), sgpr(VCC, 2), sgpr(M0))


def caller(live: RegSet) -> Caller:
    none = RegSet()
    site = Site(cast(Instr, None), Place.BEFORE, lambda: Location("k"), live, none, none, none, RegSet, (), True)
    pool = Pool(RegSet.of(sgpr(10, 8)), lambda: Location("k"))
    return Caller(ISA, cast(Fragment, None), cast(Insertion, None), site, {}, pool, Edit(Cause.CALL), frame=0)


@pytest.mark.parametrize("reg", SPECIAL, ids=str)
def test_each_special_register_is_kept_if_it_is_live_and_overwritten(reg: Reg) -> None:
    for live, clobbered, kept in ((reg, reg, True), (None, reg, False), (reg, None, False)):
        made = caller(RegSet.of(*([live] if live else [])))
        made.save(RegSet.of(*([clobbered] if clobbered else [])), RegSet())
        assert list(made.saved) == ([reg] if kept else [])
        before = len(made.items)
        made.restore()
        insts = [item.inst for item in made.items if isinstance(item, Single)]
        assert [RegSet.of(reg).overlaps(inst.reads) for inst in insts[:before]] == [True] * kept
        assert [RegSet.of(reg).overlaps(inst.writes) for inst in insts[before:]] == [True] * kept


def test_scc_comes_back_last() -> None:
    made = caller(RegSet.of(*SPECIAL))
    made.save(RegSet.of(*SPECIAL), RegSet())
    made.restore()
    last = made.items[-1]
    assert list(made.saved) == list(SPECIAL) and isinstance(last, Single) and last.inst.writes == RegSet.of(sgpr(SCC))


def test_arguments_are_read_before_their_registers_are_written() -> None:
    for wanted in ({4: 10, 14: 4}, {4: 5, 5: 4}, {4: 5, 5: 6, 6: 4, 7: 4}):
        made, held = caller(RegSet()), {number: number for number in range(16)}
        made.pool = Pool(RegSet.of(vgpr(20)), lambda: Location("k"))
        made.move_all({vgpr(to): vgpr(source) for to, source in wanted.items()})
        for item in made.items:
            assert isinstance(item, Single)
            into, source = item.inst["vdst"].reg, item.inst["src0"].reg
            held[into.index] = held[source.index]
        assert {to: held[to] for to in wanted} == wanted
