"""What is said of a clone is so: its code, what each instruction is for, and where values are when a hook runs."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path

import pytest
from click.testing import CliRunner
from crowded import EASY, FULL, full_and_easy
from emulated import code_object
from squeezed import crowded, marker

from luthier_py import Tool, Variable, hook, ptr, u64
from luthier_py.base.names import demangle
from luthier_py.binary.loader import load
from luthier_py.cli import app
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.explain.page import MARKS, ROLES, Role, as_facts, as_lines, as_page, explain
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import LaneOf
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import lift
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import match_payload, summary
from luthier_py.report.html import render
from luthier_py.rewrite.inject.fragment import general_registers
from luthier_py.rewrite.inject.items import Cause
from luthier_py.rewrite.inject.policies import Private, every_policy
from luthier_py.rewrite.inject.resources import ORDERS, components
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, sample


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


PAGE = (Path(__file__).parents[3] / "docs" / "explain.md").read_text()
TOOLS = ("instr_count", "lds_bank_conflicts", "branch_edges", "loop_counts", "mov_replace", "mem_trace")


def test_each_cause_has_a_role_and_each_is_told():
    assert set(ROLES) == set(Cause)
    cells = [[cell.strip() for cell in line.split("|")[1:]] for line in PAGE.splitlines()]
    rows = {row[0]: row[1] for row in cells if len(row) > 2}
    assert {role.value: MARKS.get(role, "+").strip() for role in Role}.items() <= rows.items()


def test_each_policy_is_told():
    program = lift(load(crowded(64, -1)))
    (component,) = components(program, [kernel for kernel in program.kernels if kernel.name == "k"])
    found = every_policy(program, analyse(program), component, general_registers(program.isa), Private(0), ORDERS[0])
    names = {policy.name for policy in found if policy.name.startswith("at no cost")}
    assert len(names) == 4 and names <= {line.split("|")[1].strip() for line in PAGE.splitlines() if "|" in line}


def starts_of(insts):
    return accumulate((inst.size_bytes for inst in insts[:-1]), initial=0)


@pytest.mark.parametrize(("name", "tool"), [
    pytest.param(sample.name, tool, marks=() if (place + turn) % 3 == 0 else pytest.mark.slow)
    for place, sample in enumerate(SAMPLES) for turn, tool in enumerate(TOOLS)])
def test_every_instruction_of_a_clone_is_there_once_in_order(name, tool):
    code = sample(name).path.read_bytes()
    found, made = explain(code, load_tool(tool), name), instrument(code, load_tool(tool))
    assert {function.clone for function in found.functions} == {each.chunk for each in made.patched.maps}
    for function, source in zip(found.functions, made.patched.maps, strict=True):
        insts = decoded(made, function.clone)
        assert [line.text.split()[0] for line in function.lines] == [made.program.isa.text(i).split()[0] for i in insts]
        branches = [(line.text, line.offset) for line in function.lines if line.names.startswith("to +")]
        assert branches == [(made.program.isa.text(inst), at) for inst, at in zip(insts, starts_of(insts), strict=True)
                            if inst.branch_target(0) is not None]
        assert sum(size for _, size in function.costs.values()) == sum(inst.size_bytes for inst in insts)
        own = [line.address for line in function.lines if line.role is Role.APPLICATION]
        assert own == [instr.pc for instr in source.function.instrs if instr not in made.edits.standing]


def test_values_are_where_it_says_when_the_hook_begins():
    code = crowded(64, -1)
    made = instrument(code, AtMarker(), kernels=["k"])
    (function,), isa = explain(code, AtMarker(), "crowded", ["k"]).functions, made.program.isa
    (claimed,) = made.patched.claim.functions
    (call,), (said,) = claimed.calls, function.calls.values()
    payload: Payload = made.patched.claim.payloads[call.payload]
    data = load(made.data)
    base = data.symbol(function.clone).address
    _, renaming = match_payload(isa, payload, summary(isa, payload), base + call.start,
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


def test_as_data():
    path = str(sample("reduce").path)
    done = CliRunner().invoke(app, ["explain", path, "-t", "branch_edges", "--json"])
    data = json.loads(done.stdout)
    assert data == json.loads(json.dumps(as_facts(explain(sample("reduce").path, load_tool("branch_edges"), path))))
    (function,) = data["functions"]
    assert data["kernels"]["reduce"]["code_bytes"] == [496, sum(line["size_bytes"] for line in function["lines"])]
    assert len(function["lines"]) == sum(cost["instructions"] for cost in function["costs"].values())


def test_a_tool_with_nothing_to_insert_ends_as_instrument_does(tmp_path):
    path = tmp_path / "vector_add.co"
    path.write_bytes(sample("vector_add").path.read_bytes())
    command = [str(path), "-t", "loop_counts"]
    for name in ("explain", "instrument"):
        done = CliRunner().invoke(app, [name, *command])
        assert done.exit_code == ExitCode.NOTHING_OBSERVED


def test_kernels_that_are_refused(tmp_path):
    path = tmp_path / "two.co"
    path.write_bytes(full_and_easy())
    command = ["explain", str(path), "-t", f"{Path(__file__).parents[2] / 'crowded.py'}:EveryWave"]
    assert CliRunner().invoke(app, command).exit_code == 1
    done = CliRunner().invoke(app, [*command, "--keep-going"])
    assert done.exit_code == 0 and f"kernel {FULL} is left alone: " in done.stdout
    assert f"{FULL}: the clone" not in done.stdout and f"{demangle(EASY)}: the clone" in done.stdout


def test_a_kernel_by_its_name_in_cpp(tmp_path: Path) -> None:
    path = tmp_path / "named.co"
    code = {"_Z3addPfi": [("s_nop", 0), ("s_endpgm",)], "other": [("s_endpgm",)]}
    path.write_bytes(code_object(code, tuple(code)))
    for name in ("_Z3addPfi", "add(float*, int)"):
        done = CliRunner().invoke(app, ["explain", str(path), "-t", "instr_count", "--kernel", name])
        assert done.exit_code == 0 and "\nadd(float*, int): the clone" in done.output and "other" not in done.output
        for words in (["instrument", "-t", "instr_count"], ["disasm"]):
            done = CliRunner().invoke(app, [words[0], str(path), *words[1:], "--kernel", name])
            assert done.exit_code == 0 and "other" not in done.output, done.output
        done = CliRunner().invoke(app, ["run", str(path), "--grid", "1", "--block", "64", "--kernel", name])
        assert str(done.exception) == "kernel add(float*, int) takes 3 arguments (buffer, buffer, buffer), not 0"


def test_the_empty_tool_inserts_nothing() -> None:
    done = CliRunner().invoke(app, ["explain", str(sample("reduce").path), "-t", "none"])
    assert done.exit_code == 3
