"""What a padding or a swizzle is said to cost, instruction by instruction, is what kernels cost that have it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_samples import OPTIONS

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import FOLDER, sample
from luthier_py.tools.lds_bank_conflicts.advice import advice_text

PAGE = Path(__file__).parents[2] / "docs" / "bank-conflicts.md"


def advised(code: bytes, launch: Launch, remedies: bool = True) -> Any:
    """The run, in which nothing has changed."""
    device = EmulatorDevice(load(code).target)
    tool = load_tool("lds_bank_conflicts", {"remedies": remedies, "order": "pc"})
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    original = run_original(EmulatorDevice(load(code).target), code, launch)
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}  # fmt: skip
    return ran


def cycles(rows: Sequence[dict[str, Any]]) -> list[int]:
    """In the order of the code."""
    return [row["cycles"] for row in sorted(rows, key=lambda row: row["pc"])]


@cache
def of_sample(name: str, remedies: bool = True) -> Any:
    return advised(sample(name).path.read_bytes(), launch_of(sample(name)), remedies)


@pytest.mark.parametrize(("plain", "padded"), [("transpose", "transpose_padded"), ("reduce_strided", "reduce_padded")])
def test_a_padded_kernel_costs_what_was_predicted(plain: str, padded: str) -> None:
    ran, other = of_sample(plain), of_sample(padded)
    report, measured = ran.report, other.report
    pad = next(each for each in report["remedies"] if each["text"].startswith("pad"))
    assert pad["text"] == "pad by 4 bytes after every 128"  # as its source has it: a word after each row of 32
    assert cycles(pad["instructions"]) == cycles(measured["instructions"])
    assert pad["cycles"] == measured["total"]["cycles"] and report["sampled_cycles"] == report["total"]["cycles"]
    assert measured["causes"] == measured["remedies"] == []
    assert of_sample(plain, False).report == {
        key: value for key, value in report.items() if key not in ("causes", "remedies", "sampled_cycles")
    }


def test_the_page_has_what_is_printed() -> None:
    text = PAGE.read_text()
    shown = re.findall(r"^    ((?:pad|swizzle).*)$", text, re.M)
    assert shown and set(shown) <= set(of_sample("reduce_strided").text.splitlines())


def test_causes() -> None:
    [cause] = of_sample("transpose").report["causes"]
    assert {key: cause[key] for key in ("stride_bytes", "width_bytes", "lanes", "words", "banks", "deepest")} == {
        "stride_bytes": 128, "width_bytes": 4, "lanes": 32, "words": 32, "banks": 1, "deepest": 32}  # fmt: skip
    report = of_sample("histogram").report
    assert "modify words of one bank" in report["causes"][0]["text"] and not report["remedies"]


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_a_swizzled_kernel_costs_what_was_predicted(
    target: str, require_tool: Callable[[str], str], tmp_path: Path
) -> None:
    source = (FOLDER / "transpose.hip").read_text()
    swizzled = source.replace("tile[k][tx]", "tile[k][tx ^ k]").replace("tile[tx][k]", "tile[tx][k ^ tx]")
    assert swizzled.count(" ^ ") == 2
    found = []
    for name, text in (("plain", source), ("swizzled", swizzled)):
        (tmp_path / f"{name}.hip").write_text(text)
        command = [require_tool("clang-22"), *OPTIONS, "-O2", f"--offload-arch={target}", f"-I{FOLDER}"]
        subprocess.run([*command, tmp_path / f"{name}.hip", "-o", tmp_path / name], check=True)
        found.append(advised((tmp_path / name).read_bytes(), launch_of(sample("transpose"))).report)
    plain, measured = found
    swizzle = next(each for each in plain["remedies"] if each["text"].startswith("swizzle"))
    assert swizzle["text"] == "swizzle: byte address ^ (address >> 7 & 31) << 2"  # column ^ row, in words
    assert cycles(swizzle["instructions"]) == cycles(measured["instructions"]) and measured["causes"] == []


def test_samples_of_every_shape_add_up_to_what_was_counted() -> None:
    """One wave: each access is a kind of its own, so the host's count and the device's meet."""
    one, rng = sample("lds_widths"), np.random.default_rng(2)
    for unit, most in ((1, 4096), (132, 90)):
        arguments = [parse_argument(text) for text in (f"u32={unit}", "in:u32[64]=zeros", "out:u32[64]")]
        arguments[1] = replace(arguments[1], data=rng.integers(0, most, 64, dtype=np.uint32))  # type: ignore[type-var]
        launch = replace(launch_of(one), grid=(1, 1, 1), arguments=tuple(arguments))
        report = advised(one.path.read_bytes(), launch).report
        assert any(cause["width_bytes"] == 16 for cause in report["causes"])
        assert report["sampled_cycles"] == report["total"]["cycles"] and len(report["instructions"]) > 20


def test_launches_are_combined() -> None:
    tool = load_tool("lds_bank_conflicts", {"remedies": "1"})
    one, free = of_sample("transpose").report, of_sample("transpose_padded").report
    both = tool.combined([one, one])
    assert [each["cycles"] for each in both["remedies"]] == [512, 512] and both["causes"] == one["causes"]
    mixed = tool.combined([one, {**free, "instructions": one["instructions"][:1]}])
    assert mixed["remedies"][0]["cycles"] == 256 + one["instructions"][0]["cycles"]


def test_instructions_with_the_same_cause_are_told_together() -> None:
    rows = [{"pc": pc, "instruction": f"{opcode} v{pc}, v9"} for pc, opcode in (
        (1, "ds_read_b32"), (2, "ds_read_b64"), (3, "ds_read_b32"), (4, "ds_read_b32"))]
    report = {"instructions": rows, "causes": [{"pc": row["pc"], "text": "why"} for row in rows], "remedies": [],
              "total": {"cycles": 8, "conflict_free_cycles": 4}}
    assert list(advice_text(report))[:-1] == [
        "0x1 ds_read_b32 v1, v9 and 2 more ds_read_b32: why", "0x2 ds_read_b64 v2, v9: why"]
