"""LUTHIER_CLOCK under a program: its launches take the cycles of the model, the same on each run, results are right."""

from __future__ import annotations

import json
import os
import re
from collections import Counter

import pytest
from loaded_command import run_luthier

from luthier_py.base.names import demangle
from luthier_py.host.worker.device.properties import properties
from luthier_py.isa import target


def profiles(run, program, path, **environment):
    done = run(program("transpose"), LUTHIER_DEVICE_PROFILE=str(path), **environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_program_with_the_cycle_model(program, run, tmp_path):
    once = profiles(run, program, tmp_path / "once", LUTHIER_CLOCK="model")
    again = profiles(run, program, tmp_path / "again", LUTHIER_CLOCK="model")
    assert once and once == again
    for row in once:
        assert row["cycles"] == max(row["unit_cycles"]) > 0 and len(row["unit_cycles"]) == 16
        assert row["imbalance"] >= 1 and row["wave_imbalance"] >= 1
    plain = profiles(run, program, tmp_path / "plain")
    assert [row["instructions"] for row in plain] == [row["instructions"] for row in once]
    assert all("cycles" not in row for row in plain)


def test_exec_says_how_long_each_kernel_took(program, tmp_path):
    """As the profile has it, launch by launch, under a tool, too; other clocks say nothing."""
    for name, tool in (("transpose", ()), ("vector_add", ("-t", "none"))):
        profile = tmp_path / name
        command = ["exec", "--device", "emulator:gfx90a", *tool, "--clock"]
        done = run_luthier(*command, "model", "--", program(name),
                           environment={**os.environ, "LUTHIER_DEVICE_PROFILE": str(profile)})
        assert done.returncode == 0 if not tool else 3, done.stderr
        rows = [json.loads(line) for line in profile.read_text().splitlines()]
        told = {kernel: int(cycles) for kernel, cycles in re.findall(
            r"^luthier: kernel (.*): (\d+) cycles by the model", done.stderr, re.MULTILINE)}
        expected = Counter()
        for row in rows:
            expected[demangle(row["kernel"])] += row["cycles"]
        assert told == expected and list(told.values()) == sorted(told.values(), reverse=True)
        if len(told) > 1:
            assert f"all {len(told)} kernels: {sum(told.values())} cycles in {len(rows)} launches" in done.stderr
    plain = run_luthier(*command, "instructions", "--", program(name), environment=os.environ)
    assert "cycles" not in plain.stderr


@pytest.mark.parametrize("word", ["cycles", "1"])
def test_a_word_that_is_none(program, run, word):
    done = run(program("transpose"), LUTHIER_CLOCK=word)
    assert done.returncode != 0 and f"clock `{word}`: give instructions or model" in done.stderr


def test_the_rates_that_a_program_is_told():
    """In kHz: as if an instruction or a cycle took a nanosecond, and 100 MHz."""
    told = properties(target("gfx90a"), 0)
    assert (told["clockRate"], told["wallClockRate"]) == (1_000_000, 100_000)
