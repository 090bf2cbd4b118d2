"""What a study's results say together: of runs that are written down here, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from luthier_py.features.study.cells import cells_of
from luthier_py.features.study.spec import BARE, read_study
from luthier_py.features.study.summary import summarise

STUDY = """
bare = true
repeat = 2
devices = ["gpu", "emulator:gfx90a"]
[[program]]
name = "p"
command = ["sh"]
[[program]]
name = "q"
command = ["sh"]
arguments = [["1"], ["2"]]
[[tool]]
tool = "instr_count"
name = "t"
[[figure]]
name = "f"
title = "F"
unit = "u"
bars = ["kernel", "program"]
programs = ["q"]
share = true
parts = { all = "t:n", part = "t:a.b / t:n", none = "t:z" }
[[figure]]
name = "g"
stack = false
parts = { all = "t:n / t:z" }
[[table]]
tool = "t"
items = "a.rows"
columns = ["x", "y"]
programs = ["p"]
"""
KERNELS = "_Z3onev", "two"


def outcome(cell: Any, **changed: Any) -> dict[str, Any]:
    """Counts are by arguments and launch, seconds by tool; the first repeat took longer."""
    n = int(cell.arguments or 3)
    reports = [{"launch": at, "launches": 1, "kernel": kernel, "report": {
        "n": n + at, "a": {"b": 2 * n, "rows": [{"x": at, "y": "r"}, 4]}, "none": None}}
        for at, kernel in enumerate(KERNELS)]  # fmt: skip
    return {"status": "ok", "exit_code": 0, "said": "", "output_sha256": "same",
            "seconds": (1.0 if cell.tool == BARE else 3.0) + (cell.repeat == 0),
            "verdicts": [{"reports": [] if cell.tool == BARE else reports}], **changed}  # fmt: skip


@pytest.fixture
def summed(tmp_path: Path) -> Any:
    """``summed(changed)``: the summary, with other outcomes of some groups' repeats."""
    (tmp_path / "s.toml").write_text(STUDY)
    study = read_study(tmp_path / "s.toml")

    def of(changed: Mapping[tuple[str, str, str, str, int], dict[str, Any]]) -> Any:
        return summarise(study, [(cell, outcome(cell, **changed.get((*cell.group[:4], cell.repeat), {})))
                                 for cell in cells_of(study)])  # fmt: skip

    return of


def test_runs_that_agree(summed: Any) -> None:
    found = summed({})
    assert (found["runs"], found["statuses"], found["observed"]) == (24, {"ok": 24}, True)
    assert found["differences"] == found["failures"] == found["campaigns"] == []
    assert len(found["groups"]) == 12
    for row in found["groups"]:
        bare = row["tool"] == BARE
        assert (row["runs"], row["launches"], row["parts"]) == (2, 0 if bare else 2, False)
        base = 1.0 if bare else 3.0
        assert (row["least_seconds"], row["median_seconds"], row["most_seconds"]) == (base, base + 0.5, base + 1)
        assert row["ratio"] == pytest.approx(1 if bare else 3.5 / 1.5)


def test_figures_and_tables(summed: Any) -> None:
    """Of one run of each kind; bars add up what they have no column for."""
    found = summed({})
    shares, plain = found["figures"]
    assert {key: shares[key] for key in ("name", "title", "unit", "share", "stack", "parts", "missing")} == {
        "name": "f", "title": "F", "unit": "u", "share": True, "stack": True, "parts": ["all", "part", "none"],
        "missing": ["t:z"],
    }  # fmt: skip
    rows = {row["bar"]: row["values"] for row in shares["rows"]}
    assert list(rows) == ["one() q", "two q"]
    for (n, b), bar in zip(((6, 12), (10, 12)), rows, strict=True):  # of two arguments on two devices
        assert rows[bar] == pytest.approx([100 * value / (n + b / n) for value in (n, b / n, 0)])
    assert plain["rows"] == [{"bar": bar, "values": [0.0]} for bar in ("p", "q 1", "q 2")] and not plain["stack"]
    [table] = found["tables"]
    assert table["rows"] == [{"of": f"p {device}", "values": [at, "r"]}
                             for device in ("gpu", "emulator:gfx90a luthier") for at in (0, 1)]  # fmt: skip


def test_runs_that_differ_and_runs_that_fail(summed: Any) -> None:
    under = "t", "gpu"
    found = summed({
        ("p", "", *under, 1): {"verdicts": [], "output_sha256": "other"},
        ("q", "1", *under, 0): {"status": "failed", "exit_code": 3, "said": "first\nlast"},
        ("q", "2", *under, 0): {"status": "timeout", "exit_code": None},
        ("q", "2", *under, 1): {"status": "timeout", "exit_code": None},
        ("p", "", BARE, "gpu", 0): {"status": "failed"}, ("p", "", BARE, "gpu", 1): {"status": "failed"},
    })  # fmt: skip
    assert found["statuses"] == {"ok": 19, "failed": 3, "timeout": 2}
    assert found["differences"] == [f"p t gpu: {text}" for text in (
        "process 0, launch 0 of _Z3onev, n: 3 and None", "process 0, launch 0 of _Z3onev, a.b: 6 and None",
        "process 0, launch 0 of _Z3onev, a.rows.0.x: 0 and None", "and 8 more")]  # fmt: skip
    assert found["failures"] == ["p bare gpu: failed, exit code 0 (2 of 2 runs)",
                                 "q 1 t gpu: failed, exit code 3: last (1 of 2 runs)",
                                 "q 2 t gpu: timeout (2 of 2 runs)"]  # fmt: skip
    p, q1, q2 = (row for row in found["groups"] if (row["tool"], row["device"]) == under)
    assert q2["median_seconds"] is None and q2["launches"] == 0
    assert q1["median_seconds"] == 3 and p["ratio"] is None
    bars = {row["bar"] for row in found["figures"][1]["rows"]}
    assert bars == {"p", "q 1", "q 2"}, "of those repeats and devices that went well"


def test_whether_anything_was_observed(tmp_path: Path, summed: Any) -> None:
    """By a run with a tool that went well; a study without tools wants nothing else."""
    keys = [(*arguments, "t", device, repeat) for arguments in (("p", ""), ("q", "1"), ("q", "2"))
            for device in ("gpu", "emulator:gfx90a") for repeat in range(2)]  # fmt: skip
    nothing = dict.fromkeys(keys, {"status": "nothing observed"})
    assert not summed(nothing)["observed"] and summed(dict(list(nothing.items())[1:]))["observed"]
    (tmp_path / "b.toml").write_text('[[program]]\ncommand = ["sh"]\n')
    study = read_study(tmp_path / "b.toml")
    assert summarise(study, [(cell, outcome(cell)) for cell in cells_of(study)])["observed"]
