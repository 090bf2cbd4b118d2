"""LUTHIER_CLOCK under a program: its launches take the cycles of the model, the same on each run, results are right."""

from __future__ import annotations

import json

import pytest


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


@pytest.mark.parametrize("word", ["cycles", "1"])
def test_a_word_that_is_none(program, run, word):
    done = run(program("transpose"), LUTHIER_CLOCK=word)
    assert done.returncode != 0 and f"clock `{word}`: give instructions or model" in done.stderr
