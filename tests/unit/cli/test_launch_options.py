"""luthier run under checks and by schedules: lines, data, exit codes."""

from __future__ import annotations

import json

import pytest
from test_cli import SAXPY, path

ARGS = ["u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"]
BEYOND = ["u32=1001", *ARGS[1:]]


def test_findings_are_told_and_count(luthier):
    code, _, err = luthier("run", path("saxpy"), *SAXPY, *ARGS, "--check", "all", "--error-exitcode", "9")
    everything = "bounds, waits, races, init, barriers, hardware"
    assert code == 0 and err == f"luthier: checks ({everything}): nothing found in 1 launch\n"
    command = ["run", path("saxpy"), *SAXPY, *BEYOND, "--check", "bounds"]
    code, out, err = luthier(*command, "--error-exitcode", "9", "--json")
    assert code == 9 and "luthier: check bounds: kernel saxpy: a read of 4 bytes at 0x" in err
    assert "out of bounds; just past the end of buffer" in err and "\n  at pc 0x" in err
    assert err.endswith("luthier: checks (bounds): 3 findings in 1 launch\n")
    found = json.loads(out)["run"]["findings"]
    assert {row["kind"] for row in found} == {"bounds"} and found[0]["by"]["lane"] == 1000 % 64
    assert luthier(*command)[0] == 0
    assert luthier("run", path("saxpy"), *SAXPY, *BEYOND)[0] == 1


def test_schedules(luthier):
    command = ["run", path("saxpy"), *SAXPY, *ARGS]
    code, out, _ = luthier(*command, "--shuffle", "3")
    assert code == 0 and "shuffle: the same by 3 schedules" in out
    code, out, _ = luthier(*command, "--schedule", "seed=4", "--json")
    assert code == 0 and json.loads(out)["run"]["shuffle"] is None
    code, out, _ = luthier(*command, "--shuffle", "2", "--json")
    assert code == 0 and json.loads(out)["run"]["shuffle"]["schedules"] == 2


def test_what_makes_no_sense(luthier):
    for wrong, why in ((("--check", "some"), "--check=some: check `some`"), (("--check", ""), "--check names no check"),
                       (("--schedule", "one"), "--schedule=one: give seed=N"),
                       (("--schedule", f"seed={1 << 64}"), "give seed=N"),
                       (("--shuffle", "2", "--schedule", "seed=1"), "leave out --schedule"),
                       (("--error-exitcode", "2"), "give one of them"),
                       (("--shuffle", "2", "-t", "instr_count"), "leave out -t")):
        code, _, err = luthier("run", path("saxpy"), *SAXPY, *ARGS, *wrong)
        assert code == 2 and why in err


@pytest.mark.parametrize("command", ["exec", "record", "check"])
def test_an_option_that_there_is_not_is_no_program(command, luthier):
    code, _, said = luthier(command, "--devise", "emulator:gfx90a", "--", "true")
    assert code == 2 and "No such option '--devise'" in said and "'--device'" in said
