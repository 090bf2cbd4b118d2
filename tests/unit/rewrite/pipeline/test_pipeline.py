"""Bytes to bytes: what holds whatever the tool is."""

from __future__ import annotations

import pytest
from crowded import EASY, FULL, EveryWave, full_and_easy

import luthier_py
from luthier_py.base.errors import CheckFailed, Invalid, OutOfRegisters
from luthier_py.binary.link import link
from luthier_py.binary.loader import load
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Mutator, Tool, Variable, hook, load_tool, ptr, u64
from luthier_py.samples import sample as sample_called


def test_original_bytes_stay_where_they_are(sample):
    code = sample.path.read_bytes()
    data = instrument(code, load_tool("instr_count")).data
    old, new = load(code), load(data)
    for part in old.text_ranges:
        assert new.read(part.start, len(part)) == old.read(part.start, len(part))
    assert {k.name for k in new.kernels} == {n + s for n in (k.name for k in old.kernels) for s in ("", ".luthier")}


def test_the_same_input_gives_the_same_bytes(sample):
    code = sample.path.read_bytes()
    assert instrument(code, load_tool("opcode_histogram")).data == instrument(code, load_tool("opcode_histogram")).data


def test_one_kernel_that_cannot_be_served_stops_everything_or_is_left_alone():
    data = full_and_easy()
    with pytest.raises(OutOfRegisters, match=r"kernel full, pc 0x"):
        instrument(data, EveryWave(), kernels=[FULL, EASY])
    made = instrument(data, EveryWave(), kernels=[FULL, EASY], keep_going=True)
    assert [(r.kernel, r.where.text) for r in made.refused] == [(FULL, "s_nop 7")]
    names = {kernel.name for kernel in load(made.data).kernels}
    assert f"{EASY}.luthier" in names and f"{FULL}.luthier" not in names


class AtTheEnd(Tool):
    """Where all registers are free."""

    count = Variable(u64)

    @hook(lanes="one")
    def add(count: ptr[u64]) -> None:
        count[0] = u64(1)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_exit(kernel, self.add, self.count)


def test_a_kernel_that_cannot_be_proved_is_left_alone_and_the_others_are_not(monkeypatch):
    """Whoever makes copies makes one of a kernel wrongly: its first instruction is another one."""
    def damaged(obj, patch):
        data = bytearray(link(obj, patch))
        symbol = load(bytes(data)).symbol(f"{FULL}.luthier")
        if symbol is not None:
            at = load(bytes(data)).elf.load_at(symbol.address)
            data[at.offset + symbol.address - at.address] ^= 1
        return bytes(data)

    data, tool, both = full_and_easy(), AtTheEnd(), [FULL, EASY]
    assert len(instrument(data, tool, kernels=both).patched.report) == 2
    monkeypatch.setattr(luthier_py.rewrite.pipeline, "link", damaged)
    with pytest.raises(CheckFailed):
        instrument(data, tool, kernels=both)
    made = instrument(data, tool, kernels=both, keep_going=True)
    assert [r.kernel for r in made.refused] == [FULL] and "should be" in made.refused[0].reason
    assert [row.name for row in made.patched.report] == [EASY]
    monkeypatch.undo()
    assert made.data == instrument(data, tool, kernels=[EASY]).data


def test_a_hook_may_store_and_then_load_over_what_it_stored(tmp_path):
    """Under XNACK a load may not be replayed over what the loads before it read; stores alone are no such loads."""
    (tmp_path / "tool.py").write_text(
        "from luthier_py import EXEC, Mutator, Tool, Variable, hook, ptr, sgpr, u64\n"
        "class Both(Tool):\n"
        "    a = Variable(u64)\n"
        "    b = Variable(u64)\n"
        "    @hook(lanes='one')\n"
        "    def both(a: ptr[u64], b: ptr[u64], e: u64) -> None:\n"
        "        a[0] = e\n"
        "        b[0] = b[0] + u64(1)\n"
        "    def instrument(self, m: Mutator) -> None:\n"
        "        for kernel in m.kernels:\n"
        "            m.at_entry(kernel, self.both, self.a, self.b, sgpr(EXEC, 2))\n")
    assert instrument(sample_called("saxpy").path, str(tmp_path / "tool.py")).patched.report


def test_only_chosen_kernels_are_cloned():
    made = instrument(full_and_easy(), EveryWave(), kernels=[EASY])
    assert [row.name for row in made.patched.report] == [EASY]


def test_files_classes_and_names_are_taken(tmp_path):
    path = sample_called("saxpy").path
    code, tool = path.read_bytes(), load_tool("instr_count")
    wanted = instrument(code, tool).data
    for given in (path, str(path), bytearray(code), memoryview(code)):
        assert instrument(given, type(tool)).data == instrument(given, "instr_count", kernels="saxpy").data == wanted
        assert luthier_py.load(given).data == code
    assert luthier_py.load(str(path)).name == str(path)
    assert luthier_py.load(str(path), "mine").name == luthier_py.load(code, "mine").name == "mine"


@pytest.mark.parametrize(
    ("code", "tool", "message"),
    [
        ("no/such.co", "none", r"no/such.co: No such file.*; give the path of a code object, or its bytes"),
        ("a\0b", "none", "null byte.*; give the path"),
        (5, "none", "given as bytes or as the path of a file, not as int"),
        (b"", 5, "5 is no tool; give a Tool, its class, its name, or the path"),
        (b"", str, "<class 'str'> is no tool"),
        (b"", "instr_cuont", "no tool is called instr_cuont"),
        (b"", "instr_count,", "instr_count,: a comma without a tool's name on each side"),
    ],
)
def test_what_is_none_says_what_to_give(code, tool, message):
    with pytest.raises(Invalid, match=message):
        instrument(code, tool)
    if tool == "none":
        with pytest.raises(Invalid, match=message):
            luthier_py.load(code)
