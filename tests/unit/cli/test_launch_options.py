"""luthier run under checks and by schedules: lines, data, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from emulated import ISA, LANES, code_object
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


def test_dynamic_lds(luthier, tmp_path):
    """Behind the kernel's own there is as much as the launch asks for."""
    lines = ("s_load_dwordx2 s[0:1], s[4:5], 0x0", "v_lshlrev_b32_e32 v1, 2, v0", "ds_write_b32 v1, v0 offset:256",
             "s_waitcnt lgkmcnt(0)", "ds_read_b32 v2, v1 offset:256", "s_waitcnt lgkmcnt(0)",
             "global_store_dword v1, v2, s[0:1]", "s_endpgm")
    (tmp_path / "k.co").write_bytes(code_object({"k": [ISA.parse(line).raw for line in lines]}, lds_bytes=4 * LANES))
    for given, wanted in (((), np.zeros(LANES)), (("--lds", 4 * LANES), np.arange(LANES))):
        code, _, err = luthier("run", tmp_path / "k.co", "--kernel", "k", "--grid", "1", "--block", LANES, *given,
                               "--save", tmp_path, *["out:u32[64]"] * 3)  # fmt: skip
        assert code == 0 and np.array_equal(np.load(next(tmp_path.glob("*0*.npy"))), wanted), err
    assert luthier("run", path("saxpy"), *SAXPY, *ARGS, "--lds", "-1")[0] == 2


@pytest.mark.parametrize("command", ["exec", "record", "check"])
def test_an_option_that_there_is_not_is_no_program(command, luthier):
    code, _, said = luthier(command, "--devise", "emulator:gfx90a", "--", "true")
    assert code == 2 and "No such option '--devise'" in said and "'--device'" in said
