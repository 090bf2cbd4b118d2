"""One fault whose effect is known: the elements that it reaches, bit for bit, and the report of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from compiled_samples import CompiledSamples

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Done, Launch
from luthier_py.features.run.launched import launch_file
from luthier_py.features.run.specs import parse_argument
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

SAXPY = Launch("saxpy", (4, 1, 1), (256, 1, 1), tuple(map(parse_argument, (
    "u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"))))
TARGETS = ("gfx90a", 64), ("gfx1100", 32), ("gfx1201", 32)
MASK = 0x00F0_0001


@pytest.fixture(scope="module")
def compiled(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> CompiledSamples:
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("samples"))


def with_fault(path: Path, **options: object) -> Done:
    return launch_file(path, SAXPY, load_tool("fault_injection", options), run_settings("emulator"))


def results(done: Done) -> np.ndarray:
    return done.ran.outputs[3].view(np.uint32)


def bare(path: Path) -> np.ndarray:
    return results(launch_file(path, SAXPY, None, run_settings("emulator")))


ONCE = {
    "flip": lambda x: x ^ 1 << 22, "flip_two": lambda x: x ^ 3 << 22, "value": lambda x: MASK, "zero": lambda x: 0,
}
ALWAYS = {"xor": lambda x: x ^ MASK, "and": lambda x: x & MASK, "or": lambda x: x | MASK}


@pytest.mark.parametrize(("target", "size"), TARGETS)
def test_a_result_is_wrong_in_one_lane(target: str, size: int, compiled: CompiledSamples) -> None:
    """Of the multiply-add, that writes one register: element 700 is lane 700 % size of wave 700 / size."""
    path, at = compiled.path("saxpy", target, size), 700
    expected = bare(path)
    for model, wrong in ONCE.items():
        done = with_fault(path, INSTRUMENT="float", MODEL=model, WAVE=at // size, WHEN=at % size, BIT=22, MASK=MASK)
        wanted = expected.copy()
        wanted[at] = wrong(int(expected[at]))
        assert np.array_equal(results(done), wanted), model
        hit = done.ran.report["hit"]
        assert (hit["wave"], hit["lane"], hit["workgroup"]) == (at // size, at % size, at // 256)
        assert (hit["before"], hit["after"]) == (expected[at], wanted[at])
        assert hit["instruction"].startswith("v_fmac_f32") and hit["group"] == "vector_alu"
        active = [min(max(1000 - size * wave, 0), size) for wave in range(1024 // size)]
        assert done.ran.report["executions"] == active and done.ran.report["times"] == 1


@pytest.mark.parametrize(("target", "size"), TARGETS)
def test_a_lane_whose_result_is_always_wrong(target: str, size: int, compiled: CompiledSamples) -> None:
    path, lane = compiled.path("saxpy", target, size), 9
    expected = bare(path)
    for model, wrong in ALWAYS.items():
        done = with_fault(path, INSTRUMENT="float", MODEL=model, LANE=lane, MASK=MASK)
        wanted = expected.copy()
        wanted[lane::size] = wrong(expected[lane::size])
        assert np.array_equal(results(done), wanted), model
        assert done.ran.report["times"] == len(wanted[lane::size])


def test_other_ways_to_count() -> None:
    """Over all waves, and a wave's executions once: what is said to be hit is what is wrong."""
    path = sample("saxpy").path
    expected = bare(path)
    for options in ({"WHEN": 700}, {"WHEN": 11, "TURNS": "waves", "LANE": 5},
                    {"WHEN": 0, "TURNS": "waves", "LANE": 5, "WAVE": 6}):
        done = with_fault(path, INSTRUMENT="float", BIT=3, **options)
        hit = done.ran.report["hit"]
        (wrong,) = np.flatnonzero(results(done) != expected)
        assert (wrong // 64, wrong % 64) == (hit["wave"], hit["lane"])
        assert results(done)[wrong] == hit["after"] == hit["before"] ^ 8 == expected[wrong] ^ 8
        if "LANE" in options:
            assert hit["lane"] == 5
    assert hit["wave"] == 6


def test_a_scalar_is_wrong_for_its_whole_wave() -> None:
    """The number of elements, as one wave loads it: none of its work-items has any."""
    path = sample("saxpy").path
    done = with_fault(path, INSTRUMENT="pc = 0x1908", MODEL="zero", WAVE=3, WHEN=0)
    expected, y = bare(path), SAXPY.arguments[3].data.view(np.uint32)
    wanted = np.concatenate([expected[:192], y[192:256], expected[256:]])
    assert np.array_equal(results(done), wanted)
    hit = done.ran.report["hit"]
    assert (hit["register"], hit["lane"], hit["before"], hit["after"]) == ("s0", None, 1000, 0)


def test_one_unit_of_the_hardware() -> None:
    """Stuck in waves of one SIMD, as HW_ID tells where waves run: a lane is wrong exactly in these."""
    path, lane = sample("saxpy").path, 9
    expected, wrong = bare(path), list[int]()
    for simd in range(4):
        done = with_fault(path, INSTRUMENT="float", MODEL="xor", LANE=lane, MASK=1, UNIT=f"HW_ID:0x30={simd << 4:#x}")
        found = np.flatnonzero(results(done) != expected)
        assert len(found) == done.ran.report["times"]
        wrong += found.tolist()
    assert sorted(wrong) == list(range(lane, 1000, 64))


def test_nothing_is_hit_unless_it_is_asked_for() -> None:
    path = sample("saxpy").path
    expected = bare(path)
    for options, why in (({}, "WHEN says none"), ({"WHEN": 10**6}, "not written so often"),
                         ({"WHEN": 15, "WAVE": 15, "TURNS": "waves", "LANE": 60}, "the lane was not active"),
                         ({"MODEL": "or", "UNIT": "HW_ID:0x30=0x0", "LANE": 60, "INSTRUMENT": "pc = 1"}, "")):
        done = with_fault(path, **options)
        assert np.array_equal(results(done), expected)
        assert done.ran.report is None or done.ran.report["hit"] is None and why in done.ran.text
    assert done.ran.report is None


def test_what_is_never_hit_is_named() -> None:
    """Where EXEC alone is written; branches and ends write nothing."""
    assert with_fault(sample("saxpy").path).ran.report["left_out"] == []
    reduce = sample("reduce")
    done = launch_file(reduce.path, launch_of(reduce), load_tool("fault_injection", {}), run_settings("emulator"))
    assert {row["instruction"] for row in done.ran.report["left_out"]} == {"s_or_b64 exec, exec, s[0:1]"}


def test_a_wrong_address_ends_the_launch() -> None:
    with pytest.raises(DeviceError, match=r"lane 7 of wave 1 of work-group 0: bad address .* `global_load_dword v3"):
        with_fault(sample("saxpy").path, INSTRUMENT="pc = 0x1964", WAVE=1, WHEN=2 + 7, BIT=20)


def test_options_that_make_no_sense() -> None:
    for options, words in (({"UNIT": "HW_ID:1=1"}, "for MODEL=xor, and, or; flip has its turn"),
                           ({"UNIT": "HW_ID:1", "MODEL": "or"}, "give REGISTER:MASK=VALUE"),
                           ({"UNIT": "HW_ID:1=2", "MODEL": "or"}, "no bit of VALUE outside of MASK")):
        with pytest.raises(Invalid, match=words):
            with_fault(sample("saxpy").path, **options)
