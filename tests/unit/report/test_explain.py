"""What is said of a clone is so: its code, what each instruction is for, and where values are when a hook runs."""

from __future__ import annotations

import pytest
from squeezed import crowded, marker
from typer.testing import CliRunner

from luthier_py import Tool, Variable, hook, ptr, u64
from luthier_py.cli import app
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import LaneOf
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import found_at, summary
from luthier_py.report.explain import Role, as_lines, as_page, explain
from luthier_py.report.html import render
from luthier_py.samples import SAMPLES, sample
from luthier_py.tool import load_tool


@hook(lanes="all")
def everywhere(rows: ptr[u64], by: u64) -> None:
    atomic_add(rows + lane_id(), by)


class AtMarker(Tool):
    rows = Variable(u64, 64)

    def instrument(self, m):
        m.before(marker(m), everywhere, self.rows, 3)


def decoded(made, symbol):
    data, isa = load(made.data), made.program.isa
    code = data.read(data.symbol(symbol).address, data.symbol(symbol).size)
    at, insts = 0, []
    while at < len(code):
        insts.append(isa.decode(code, at))
        at += insts[-1].size_bytes
    return insts


@pytest.mark.parametrize("name", [sample.name for sample in SAMPLES])
@pytest.mark.parametrize("tool", ["instr_count", "lds_bank_conflicts"])
def test_every_instruction_of_a_clone_is_there_once_in_order(name, tool):
    code = sample(name).path.read_bytes()
    found, made = explain(code, load_tool(tool), name), instrument(code, load_tool(tool))
    assert {function.clone for function in found.functions} == {each.chunk for each in made.patched.maps}
    for function, source in zip(found.functions, made.patched.maps, strict=True):
        insts = decoded(made, function.clone)
        assert [line.text.split()[0] for line in function.lines] == [made.program.isa.text(i).split()[0] for i in insts]
        assert sum(size for _, size in function.costs.values()) == sum(inst.size_bytes for inst in insts)
        own = [line.address for line in function.lines if line.role is Role.APPLICATION]
        assert own == [instr.pc for instr in source.function.instrs]


def test_values_are_where_it_says_when_the_hook_begins():
    code = crowded(64, -1)
    made = instrument(code, AtMarker(), kernels=["k"])
    (function,), isa = explain(code, AtMarker(), "crowded", ["k"]).functions, made.program.isa
    (claimed,) = made.patched.claim.functions
    (call,), (said,) = claimed.calls, function.calls.values()
    payload: Payload = made.patched.claim.payloads[call.payload]
    data = load(made.data)
    base = data.symbol(function.clone).address
    _, renaming = found_at(isa, payload, summary(isa, payload), base + call.start,
                           lambda pc: isa.decode(data.read(pc, 12), 0), call.constants)
    (rows, where), (by, constant) = said.values
    assert rows == "rows: ptr[u64]" and where == f"s[{renaming[payload.params[0].index]}:" + where.partition(":")[2]
    assert where.endswith("is AtMarker.rows") and (by, constant) == ("by: u64", "3")
    spilled = dict(said.spilled)
    assert said.saved and any("lane" in slot for slot in spilled.values())
    (told,) = made.patched.calls[function.clone]
    assert any(isinstance(slot, LaneOf) for _, slot in told[1].spilled)
    assert said.policy in made.patched.report[0].schemes
    roles = {role for role in function.costs}
    assert roles >= {Role.APPLICATION, Role.HOOK, Role.AROUND}


def test_as_a_listing_and_as_a_page(tmp_path):
    path, page = sample("reduce").path, tmp_path / "why.html"
    done = CliRunner().invoke(app, ["explain", str(path), "-t", "instr_count"])
    assert done.exit_code == 0 and "kept for each wave: InstrCount.count in s[" in done.stdout
    assert "; flush before" in done.stdout and "towards InstrCount.instructions" in done.stdout
    found = explain(path.read_bytes(), load_tool("instr_count"), "reduce")
    assert done.stdout.splitlines() == list(as_lines(found))
    done = CliRunner().invoke(app, ["explain", str(path), "-t", "instr_count", "--html", str(page)])
    assert done.exit_code == 0 and page.read_text() == render(as_page(found))
    assert "flush before" in page.read_text()


def test_what_cannot_be_made_is_no_explanation():
    done = CliRunner().invoke(app, ["explain", str(sample("reduce").path), "-t", "instr_count", "--kernel", "nobody"])
    assert done.exit_code != 0

