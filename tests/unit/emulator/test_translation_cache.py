"""Translations that were kept: found without decoding, right to the last count, and never taken for other code."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from emulated import ISA, Bench, code_object
from launching import launch
from packets import Host

from luthier_py.base import storage
from luthier_py.base.errors import DeviceError
from luthier_py.base.llvm import Effort
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchProfile
from luthier_py.emulator.code import translation_cache
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.options.checks import ALL
from luthier_py.emulator.options.launch_options import NO_OPTIONS, LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.emulator.options.translator import ROOMS
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_original
from luthier_py.isa import sgpr, vgpr
from luthier_py.samples import sample

SAMPLES = "matmul", "mandelbrot", "histogram", "function_pointers", "device_call", "bitonic_sort"
START = ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0)
ENTRY = "translations"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(storage.CACHE, str(folder))
    monkeypatch.setattr(storage, "_damaged", [])
    return folder


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be decoded for a translation from now on."""

    def decode(code: HostedCode, pc: int) -> None:
        raise AssertionError(f"decoded at 0x{pc:x}")

    monkeypatch.setattr(HostedCode, "decode", decode)


def counts(profile: LaunchProfile | None) -> tuple[object, ...]:
    assert profile is not None
    return dict(profile.counts), dict(profile.lanes), dict(profile.active), profile.opcodes(), profile.lane_opcodes()


def ran(name: str, options: LaunchOptions = NO_OPTIONS) -> tuple[dict[int, bytes], tuple[object, ...]]:
    """Outputs and all counts of a sample on a new device."""
    code = sample(name).path.read_bytes()
    device = EmulatorDevice(load(code).target, options=options)
    outputs = run_original(device, code, launch_of(sample(name))).outputs
    return {n: array.tobytes() for n, array in outputs.items()}, counts(device.profile)


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_is_decoded_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = ran(name)
    forbid(monkeypatch)
    assert ran(name) == fresh


@pytest.mark.parametrize("name", ["matmul", "function_pointers"])
def test_code_for_checks_and_schedules_is_kept_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [NO_OPTIONS, LaunchOptions(checks=ALL), LaunchOptions(schedule=Schedule(1)),
              LaunchOptions(schedule=Schedule(1), checks=ALL)]
    fresh = [ran(name, options) for options in wanted]
    assert fresh == [fresh[0]] * 4
    forbid(monkeypatch)
    assert [ran(name, options) for options in wanted] == fresh


def test_findings_of_kept_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """They name instructions, which are decoded then."""
    load_it = ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(0, 2)).raw
    data = code_object({"k": [*START, ("v_mov_b32", vgpr(2), 0), load_it, ("v_add_u32", vgpr(1), 1, vgpr(1)),
                              ("s_waitcnt", 0), ("s_endpgm",)]})

    def found() -> list[str]:
        device = EmulatorDevice(ISA.target, options=LaunchOptions(checks=ALL))
        buffer, module = device.alloc(64), device.load(data)
        device.write(buffer.address, bytes(64))
        device.launch(module.kernel("k"), (1, 1, 1), (64, 1, 1), buffer.address.to_bytes(8, "little").ljust(280, b"\0"))
        return [str(one) for one in device.findings]

    fresh = found()
    assert len(fresh) == 1 and "v_add_u32" in fresh[0] and "global_load_dword" in fresh[0]
    forbid(monkeypatch)
    assert found() == fresh


def test_below_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of what somebody else has loaded; code that was changed in memory is other code."""
    found, data, record = [], sample("vector_add").path.read_bytes(), load(sample("vector_add").path.read_bytes())
    for _ in range(2):
        host, values = Host(), [np.arange(64, dtype=np.float32) for _ in range(3)]
        base = host.place(data)
        profile = host.dispatch(base, record.kernel("vector_add"), values)
        found.append(([value.tobytes() for value in values], counts(profile)))
        again = host.dispatch(base, record.kernel("vector_add"), values)
        assert counts(again) == counts(profile)
        forbid(monkeypatch)
    assert found[0] == found[1]


def adding(number: int) -> bytes:
    """A kernel that writes ``number``: they differ behind the bytes that tell beginnings apart, and in length."""
    padding = [("s_nop", 0)] * translation_cache.BEGINNING_BYTES
    store = ISA.make("global_store_dword", vgpr(0), vgpr(1), sgpr(0, 2)).raw
    return code_object({"k": [*START, *padding, ("v_mov_b32", vgpr(0), 0), ("v_mov_b32", vgpr(1), number), store,
                              *padding[:number], ("s_endpgm",)]})


def written(number: int) -> int:
    return int.from_bytes(Bench(bytes(4)).run(adding(number), "k").buffers[0], "little")


def test_functions_that_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(1, translation_cache.MOST_EXTENTS + 1)
    assert [written(number) for number in numbers] == list(numbers)
    forbid(monkeypatch)
    assert [written(number) for number in numbers] == list(numbers)


def test_another_version_of_the_translator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(3) == 3
    monkeypatch.setattr(translation_cache, "translator", lambda: "another version")
    forbid(monkeypatch)
    with pytest.raises(AssertionError, match="decoded at"):
        written(3)


def test_sources_are_all_files_that_translation_depends_on() -> None:
    package = Path(storage.__file__).parents[1]
    names = {path for path, _ in storage._files(str(package), ROOMS)}
    assert {str(path) for path in (package / "emulator").rglob("*.py")} <= names
    assert {str(path) for path in (package / "isa").rglob("*.py")} <= names
    assert {str(package / "isa/tables/records.json.gz"), str(package / "binary/loader/origins.py")} <= names
    everything = {path for path, _ in storage._sources(str(package))}  # of which copies are made: tools are among it
    assert names | {str(package / "tools" / "instr_count" / "__init__.py")} < everything


def test_settings_make_another_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are cut in another way are other host functions."""
    fresh = ran("matmul")
    monkeypatch.setattr(translation_cache.sizes, "BLOCK", 3)
    monkeypatch.setattr(translation_cache.sizes, "PART", 7)
    assert ran("matmul") == fresh
    forbid(monkeypatch)
    assert ran("matmul") == fresh


def test_machine_code_that_is_gone(cache: Path) -> None:
    fresh = ran("mandelbrot")
    shutil.rmtree(cache / "host")
    assert ran("mandelbrot") == fresh
    assert any((cache / "host").rglob("*"))


def test_a_fault_has_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    data, texts = sample("vector_add").path.read_bytes(), []
    for _ in range(2):
        with pytest.raises(DeviceError) as caught:
            launch(EmulatorDevice(ISA.target), data, "vector_add", [np.zeros(8, np.float32)] * 3, (4, 1, 1), (64, 1, 1))
        texts.append(re.sub("0x[0-9a-f]{12}", "ADDRESS", str(caught.value)))
        forbid(monkeypatch)
    assert texts[0] == texts[1] and "global_load_dword" in texts[0]


def entries(cache: Path) -> list[Path]:
    return [path for path in (cache / ENTRY).rglob("*") if path.is_file()]


@pytest.mark.parametrize("size", (0, 1, 31, 33, 100))
def test_truncated_entries(size: int, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fresh = ran("matmul")
    for path in entries(cache):
        path.write_bytes(path.read_bytes()[:size])
    assert ran("matmul") == fresh
    said = capfd.readouterr().err
    assert said.count("luthier: ignoring a damaged entry of the cache") == 1 and said.count("\n") == 1


def hostile(facts: object) -> list[object]:
    """Texts of the same shape as a translation, each wrong in one way."""
    changed: list[object] = [None, [], {}, 7, "text", {"runs": []}]
    for key, value in (("calls", ["x"]), ("calls", 3), ("effort", "GREAT"), ("effort", []), ("runs", [[0, 4]]),
                       ("parts", None), ("parts", [1]), ("parts", [[]])):
        changed.append({**json.loads(json.dumps(facts)), key: value})
    for index, value in ((0, "no name"), (1, [4]), (1, []), (1, [0.5]), (2, [2]), (3, [["WAVES", 0, 1 << 40]]),
                         (3, [["WAVES", -1, 1]]), (3, [["DUCKS", 0, 1]]), (4, [1 << 40]), (4, ["0"]), (5, 5)):
        other = json.loads(json.dumps(facts))
        other["parts"][0][index] = value
        changed.append(other)
    return changed


def test_hostile_entries(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With a digest that is right, as somebody would write them who wants to do harm; told once."""
    fresh = ran("matmul")
    names = {path.parent.name + path.name: path for path in entries(cache)}
    good = {name: translation_cache.SHELF.read(name) for name in names}
    texts = [text for text in good.values() if text is not None]
    facts = next(json.loads(text) for text in texts if b"effort" in text)
    for text in [b"", b"\xff", b"[" * 100_000, *(json.dumps(one).encode() for one in hostile(facts))]:
        for name in names:
            translation_cache.SHELF.write(name, text)
        assert ran("matmul") == fresh, text[:200]
    said = capfd.readouterr().err
    assert said.count("luthier: ignoring a damaged entry of the cache") == 1 and said.count("\n") == 1


def test_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = ran("reduce")
    monkeypatch.setenv(storage.CACHE, "off")
    assert ran("reduce") == fresh


def test_large_functions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are compiled fast, too."""
    monkeypatch.setattr(translation_cache.sizes, "LARGE", 0)
    fresh = ran("bitonic_sort")
    forbid(monkeypatch)
    assert ran("bitonic_sort") == fresh
    assert Effort.FAST.name in "".join(
        str(translation_cache.SHELF.read(path.parent.name + path.name))
        for path in entries(Path(storage.os.environ[storage.CACHE]))
    )
