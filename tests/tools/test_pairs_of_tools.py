"""Any two tools go into one copy: pairs of all that are registered, or each with the next and those that inherit the
same variables."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.rewrite.tool.discover import registered_tools
from luthier_py.samples import sample

NAMES = sorted(registered_tools())
KIN = [("initcheck", "racecheck"), ("opcode_histogram", "roofline"), ("exactness", "hot_blocks")]
QUICK = {*list(pairwise(NAMES))[::3], *KIN}
DATA = sample("reduce").path.read_bytes()


@pytest.mark.parametrize(("first", "second"), [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.slow) for pair in combinations(NAMES, 2)])
def test_two_tools_go_into_one_copy(first, second):
    options = {"script.text": 'on("memory"): count(by=line)'} if "script" in (first, second) else {}
    made = instrument(DATA, load_tool(f"{first},{second}", options))
    assert not made.refused and made.edits.notes.keys() <= {first, second}


def test_those_that_inherit_the_same_variables_report_what_each_does_alone():
    launch = launch_of(sample("reduce"))

    def report(name):
        tool = load_tool(name)
        made = instrument(DATA, tool)
        return run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch).report

    for pair in KIN:
        assert report(",".join(pair)) == {name: report(name) for name in pair}
