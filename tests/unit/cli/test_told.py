"""What commands say to people: whole sentences and whole lines."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from luthier_py.cli import app
from luthier_py.samples import sample

SAXPY = [str(sample("saxpy").path), "--kernel", "saxpy", "--grid", "4", "--block", "256", "u32=1000", "f32=0.7",
         "in:f32[1000]=random:1", "inout:f32[1000]=random:2"]


def luthier(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(map(str, words)))
    return done.exit_code, done.stdout, done.stderr


def test_what_a_filter_leaves_is_named_in_a_sentence() -> None:
    option = ["-t", "mem_trace", "-O", "INSTRUMENT=opcode=s_nop"]
    code, out, err = luthier("run", *SAXPY, *option)
    assert code == 3
    assert "there is nothing for mem_trace in what INSTRUMENT=opcode=s_nop leaves of 1 kernel saxpy" in err


def test_an_object_without_line_tables_is_why_no_line_is_chosen(tmp_path: Path) -> None:
    words = "INSTRUMENT asks for source lines, and there are no line tables of 1 kernel saxpy: compile with -g"
    for chosen in ("lines = saxpy.hip:1-9", "line = 3", "global & file = *.hip"):
        code, _, err = luthier("run", *SAXPY, "-t", "mem_trace", "-O", f"INSTRUMENT={chosen}")
        assert code == 3 and words in err
    code, _, err = luthier("instrument", SAXPY[0], "-t", "mem_trace", "--lines", "a.hip:1", "-o", tmp_path / "out.co")
    assert code == 3 and words in err
    code, _, err = luthier("run", *SAXPY, "-t", "mem_trace", "-O", "INSTRUMENT=loop")
    assert code == 3 and "line tables" not in err


def test_lines_that_are_nowhere_are_answered_with_those_that_are(tmp_path: Path) -> None:
    """Also a file that is there, with lines that have no code."""
    for chosen in ("nowhere.hip:3", "transpose.hip:300-500"):
        code, _, err = luthier("instrument", sample("transpose").path, "-t", "mem_trace", "--lines", chosen, "-o",
                               tmp_path / "out.co")
        assert code == 3
        assert "asks for source lines; the code there is of device.h:16-28, transpose.hip:6-12" in err


def test_long_lines_of_tools_are_not_cut_in_files(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(
        "from luthier_py import Mutator, Tool, Variable, hook, ptr, u32\n"
        "@hook\ndef h(x: ptr[u32]) -> None:\n    x[0] = 1\n"
        "class Long(Tool):\n    x = Variable(u32)\n    def instrument(self, m: Mutator) -> None:\n"
        "        m.at_entry(m.kernels[0], h, self.x)\n"
        "    def text(self, launch, report):\n        return ' '.join(map(str, range(500)))\n"
    )
    code, out, err = luthier("run", *SAXPY, "-t", tmp_path / "long.py")
    assert code == 0 and " ".join(map(str, range(500))) in out.splitlines(), err


def test_the_whole_description_of_a_tool() -> None:
    _, out, _ = luthier("tools", "fma_in_double")
    assert "or of rounding twice." in " ".join(out.split())


def test_a_run_with_the_cycle_model() -> None:
    """What the tool inserts costs cycles, too."""
    _, out, _ = luthier("run", *SAXPY, "--clock", "model", "--json")
    bare = json.loads(out)["run"]["device_cycles"]
    assert bare["cycles"] == max(bare["unit_cycles"]) and sum(map(bool, bare["unit_cycles"])) == 4
    _, out, _ = luthier("run", *SAXPY, "--clock", "model", "-t", "instr_count", "--json")
    assert json.loads(out)["run"]["device_cycles"]["cycles"] > bare["cycles"]
    _, out, _ = luthier("run", *SAXPY, "--clock", "model")
    assert f"\n{bare['cycles']} cycles by the model" in out
    _, out, _ = luthier("run", *SAXPY)
    assert "cycles" not in out
    done = CliRunner().invoke(app, ["run", *SAXPY, "--clock", "wall"])
    assert done.exit_code != 0 and "clock `wall`: give instructions or model" in str(done.exception)
