"""-e and -f: a script in the place of a tool, in each command that takes one."""

from __future__ import annotations

import json

from test_cli import SAXPY, path

ARGS = ["u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"]
TWO = 'on("store"): count(by=opcode)', 'entry if group > 0:\n    # a comment: "quotes\n    count(by=wave)'


def tables(out):
    return json.loads(out)["launches"][0]["report"]["tables"]


def test_a_script_runs_from_the_command_line_and_from_a_file(luthier, tmp_path):
    command = ["run", path("saxpy"), *SAXPY, *ARGS, "--json"]
    code, out, _ = luthier(*command, "-e", TWO[0], "-e", TWO[1])
    stores, waves = tables(out)
    assert code == 0 and stores["rows"] == [{"opcode": "global_store_dword", "count": 16}]
    assert waves["rows"] == [{"wave": wave, "count": 3} for wave in range(4)]
    file = tmp_path / "script.txt"
    file.write_text("\n".join(TWO))
    code, out, err = luthier(*command, "-f", file)
    assert code == 0 and tables(out) == [stores, waves] and f"file = {file}" in err


def test_copies_are_made_of_scripts_and_explained(luthier, tmp_path):
    code, out, _ = luthier("instrument", path("saxpy"), "-e", TWO[0], "-o", tmp_path / "copy.co")
    assert code == 0 and "1 site" not in out and (tmp_path / "copy.co").stat().st_size > path("saxpy").stat().st_size
    code, out, _ = luthier("explain", path("saxpy"), "-e", 'on("store"): sum(bytes)')
    assert code == 0 and "add before 0x" in out and "s_addc_u32" in out


def test_what_is_wrong_is_usage(luthier):
    run = ["run", path("saxpy"), *SAXPY, *ARGS]
    code, _, err = luthier(*run, "-e", 'on("store"): cuont()')
    assert code == 2 and err.splitlines() == [
        "luthier: script, line 1, column 14: cuont is no action here; did you mean count?",
        '    on("store"): cuont()', "                 ^"]
    code, _, err = luthier(*run, "-e", TWO[0], "-t", "instr_count")
    assert code == 2 and "-t and -e: give one of them" in err
    code, _, err = luthier("instrument", path("saxpy"))
    assert code == 2 and "there is no tool; give one with -t, or say what to do with -e" in err
    code, _, err = luthier(*run, "-f", "nowhere.txt")
    assert code == 2 and "nowhere.txt" in err
    code, _, err = luthier(*run, "-e", 'on("matrix"): count()')
    assert code == 3 and "tool script observed nothing" in err
