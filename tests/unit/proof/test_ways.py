"""What is on its way, and what is skipped, on one of several ways to a place: hooks on the others are proved."""

from __future__ import annotations

import pytest
from emulated import LANES, code_object
from shown_kernels import END, S, everywhere, instrumented

from luthier_py import Mutator, Variable, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.program.analysis import Facts
from luthier_py.program.analysis.waits import Pending
from luthier_py.program.ir import Instr

ALL = range(102)
USED = [("s_add_u32", S(0), S(0), S(i)) for i in ALL]


def on_way(waited: bool) -> None:
    """To the last block go a way on which loads are on their way, and one that has waited for them. Registers that
    loads write are the only ones that nobody reads."""
    loads = [("s_load_dwordx4", S(i, 4), S(4, 2), 0) for i in range(40, 48, 4)]
    kept = [row for row in USED if not 40 <= row[3].index < 48]
    written = [("s_mov_b32", S(i), 1) for i in ALL if i not in (4, 5)]
    rows = [*written, *loads, ("s_cbranch_scc1", "there"), ("s_waitcnt", 0), ("s_nop", 0), ("s_cbranch_scc0", "there"),
            ("s_nop", 1), "there:", ("s_waitcnt", 0), *kept, END]
    data = code_object({"k": rows}, sgprs=102)

    def visit(tool: object, m: Mutator) -> None:
        (function,) = m.functions()
        first, second = (edge for edge in m.edges(function) if edge.taken)
        m.at_edge(second if waited else first, everywhere, tool.rows)

    instrumented(data, visit, rows=Variable(u64, LANES, name="rows"))


def test_loads_that_a_way_has_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    on_way(waited=True)
    on_way(waited=False)
    monkeypatch.setattr(Facts, "pending_after", nothing_pending)
    with pytest.raises(CheckFailed, match="a load may still write"):
        on_way(waited=False)


def nothing_pending(facts: Facts, instr: Instr) -> Pending:
    """As where the kernel starts."""
    return facts.pending_before(next(iter(facts.program.function_of(instr).instrs)))
