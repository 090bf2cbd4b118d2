"""Records in files: read back by others, they are what the emulator's waves sent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from luthier_py import Channel, Lane, Mutator, Tool, channel, hook, ptr, u32, u64, vgpr
from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run import receiving
from luthier_py.features.run.launch import run_instrumented
from luthier_py.intrinsics import push
from luthier_py.report.received import Received
from luthier_py.report.record_files import JsonRecords
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import f32
from luthier_py.samples import sample

ITEMS = 2048


class Item:
    item: u32
    square: u64
    half: f32


class Wave:
    items: Lane[u32]


@hook
def send(out: channel[Item], wave: channel[Wave], item: Lane[u32]) -> None:
    push(out, item, u64(item) * item, f32(item) / 2)
    push(wave, item)


class Both(Tool):
    """Sends items and waves."""

    items = Channel(Item)
    waves = Channel(Wave)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, send, self.items, self.waves, vgpr(0))


def run(path: Path) -> None:
    chosen = sample("vector_add")
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    tool = Both(luthier_records=str(path))
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch, 3)
    assert ran.records["items"].kept == ITEMS and ran.records["waves"].kept == ITEMS // 64


def check(items: dict[str, list[object]], waves: dict[str, list[object]]) -> None:
    assert items["launch"] == [3] * ITEMS
    assert sorted(items["item"]) == sorted(list(range(256)) * 8)  # work-items count from 0 in each work-group
    assert items["square"] == [item * item for item in items["item"]]
    assert items["half"] == [item / 2 for item in items["item"]]
    first = [row[0] for row in waves["items"]]
    assert sorted(first) == sorted([0, 64, 128, 192] * 8)
    assert waves["items"] == [list(range(start, start + 64)) for start in first]


def test_ndjson(tmp_path: Path) -> None:
    run(tmp_path / "trace.ndjson")
    found = []
    for name in ("items", "waves"):
        rows = [json.loads(line) for line in (tmp_path / f"trace.{name}.ndjson").read_text().splitlines()]
        found.append({key: [row[key] for row in rows] for key in rows[0]})
    check(*found)


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run(tmp_path / "trace.parquet")
    check(*(parquet.read_table(str(tmp_path / f"trace.{name}.parquet")).to_pydict() for name in ("items", "waves")))


class Full(Tool):
    """Sends more than there is room for."""

    items = Channel(Item, capacity=128, full="stop")

    @hook(lanes="one")
    def send(out: channel[Item]) -> None:
        for number in range(100000):
            push(out, u32(number), u64(number), f32(number))

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.send, self.items)


class Faulty(Tool):
    """Each wave sends one record, and writes where no memory is."""

    items = Channel(Item)

    @hook(lanes="one")
    def send(out: channel[Item], nowhere: ptr[u32]) -> None:
        push(out, 7, u64(7), f32(7))
        nowhere[0] = 7

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.send, self.items, 0)


@pytest.mark.parametrize("form", ["ndjson", "parquet"])
def test_what_was_sent_before_a_launch_failed_is_kept(form: str, tmp_path: Path) -> None:
    found = failed(Full, "full", tmp_path / f"trace.{form}")
    assert len(found) >= 128 and 0 in found  # the ring was full, and a wave began with 0


@pytest.mark.parametrize("form", ["ndjson", "parquet"])
def test_what_was_not_taken_yet_when_a_launch_failed_is_kept(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "IDLE_SECONDS", 60.0)
    found = failed(Faulty, "0x0", tmp_path / f"trace.{form}")
    assert found and set(found) == {7}


def failed(kind: type[Tool], why: str, path: Path) -> list[int]:
    """The items in the file of a launch that ended in an error."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    chosen = sample("vector_add")
    code, launch, tool = chosen.path.read_bytes(), launch_of(chosen), kind(luthier_records=str(path))
    with pytest.raises(DeviceError, match=why):
        run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)
    if path.suffix == ".ndjson":
        return [json.loads(line)["item"] for line in path.read_text().splitlines()]
    from pyarrow import parquet

    return list(parquet.read_table(str(path)).to_pydict()["item"])


def test_json_has_texts_for_what_its_numbers_lack(tmp_path: Path) -> None:
    records, file = np.zeros(4, Both.items.record.records), JsonRecords(tmp_path / "a.ndjson")
    records["half"] = np.nan, np.inf, -np.inf, 0.5
    lanes = np.zeros(1, [("x", "<f8", (64,))])
    lanes["x"][0, 3] = np.nan
    file.append(records, 7)
    file.append(lanes, 8)
    file.close()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    rows = [json.loads(line, parse_constant=refuse) for line in (tmp_path / "a.ndjson").read_text().splitlines()]
    assert [row["half"] for row in rows[:4]] == ["NaN", "Infinity", "-Infinity", 0.5]
    assert rows[4] == {"launch": 8, "x": [0.0] * 3 + ["NaN"] + [0.0] * 60}


def test_other_forms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="give a file that ends in .ndjson or .parquet"):
        Both(luthier_records=str(tmp_path / "trace.csv"))


def test_a_file_that_cannot_be_written_counts_records_as_failed(tmp_path: Path) -> None:
    (tmp_path / "trace.items.ndjson").mkdir()
    tool = Both(luthier_records=str(tmp_path / "trace.ndjson"))
    received, slots = Received(tool), np.zeros(5, Both.items.record.slots)
    with pytest.raises(IsADirectoryError):
        received.take(Both.items, slots)
    received.take(Both.items, slots)
    count = received.counts["items"]
    assert (count.received, count.kept, count.failed, count.pushed) == (10, 0, 10, 10)
