"""Numbers that the host sets before each launch: that launch has them, and nothing is made anew."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest
from weighed import Weighed

from luthier_py import LaunchParameter, Mutator, Tool, Variable, f32, f64, hook, i32, ptr, u32
from luthier_py.base.errors import HookError, Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample

TOOL = Path(__file__).with_name("weighed.py")


def weight_of(launch: int) -> int:
    return 3 * launch + (launch << 33) if launch else 1 << 40


def check(rows: Any) -> None:
    for row in rows:
        waves = prod(row["grid"]) * ceil(prod(row["block"]) / 64)
        expected = {"total": waves * weight_of(row["launch"]), "numbers": waves * row["launch"]}
        assert row["report"] == expected, row


@pytest.mark.parametrize("name", ("streams_events", "jacobi"))
def test_under_a_program(name: str, program: Callable[..., Path], tooled: Callable[..., Any]) -> None:
    done = tooled(program(name), tool=TOOL)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert len(done.verdict["reports"]) > 1
    check(done.verdict["reports"])


def test_launches_at_once_have_their_own(program: Callable[..., Path], tooled: Callable[..., Any]) -> None:
    """Nobody waits for a launch, and each kernel is launched in one stream at a time."""
    done = tooled(program("jacobi"), tool=TOOL, LUTHIER_TOOL_OPTIONS="per_launch=0")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    alone = tooled(program("jacobi"), tool=TOOL).verdict["reports"]
    for name in ("total", "numbers"):
        assert sum(row["report"][name] for row in done.verdict["reports"]) == sum(row["report"][name] for row in alone)


def test_one_copy_serves_all_values() -> None:
    chosen, tool = sample("vector_add"), Weighed()
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    device, made = EmulatorDevice(load(code).target), instrument(code, tool)
    for index, expected in enumerate((1 << 40, 3 + (1 << 33), 6 + (2 << 33))):
        assert run_instrumented(device, made, tool, launch, index).report == {"total": 32 * expected,
                                                                              "numbers": 32 * index}


@hook(lanes="one")
def keep(place: ptr[f64], single: f32, double: f64, number: i32, size: u32) -> None:
    place[0] = f64(single)
    place[1] = double
    place[2] = f64(number)
    place[3] = f64(size)


class Kinds(Tool):
    """All kinds of numbers."""

    place = Variable(f64, 4)
    single = LaunchParameter(f32, 0.1)
    double = LaunchParameter(f64, 0.1)
    number = LaunchParameter(i32, -5)
    size = LaunchParameter(u32, 0xFFFFFFFF)

    def instrument(self, m: Mutator) -> None:
        m.at_entry(m.kernels[0], keep, self.place, self.single, self.double, self.number, self.size)


def test_every_kind_of_number() -> None:
    chosen, tool = sample("vector_add"), Kinds()
    code = chosen.path.read_bytes()
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch_of(chosen))
    assert ran.report == {"place": (f32(0.1), 0.1, -5.0, float(0xFFFFFFFF))}


def test_wrong_numbers_are_refused() -> None:
    tool = Kinds()
    for name, value in (("number", 1 << 31), ("size", -1), ("size", 1.5), ("number", True), ("single", "1")):
        with pytest.raises(Invalid, match=f"Kinds.{name}"):
            setattr(tool, name, value)
    with pytest.raises(Invalid, match="cannot hold"):
        LaunchParameter(u32, -1)


def test_a_parameter_of_another_type_is_refused() -> None:
    class Wrong(Tool):
        other = LaunchParameter(f64, 1)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], keep, self.other, self.other, self.other, self.other, self.other)

    with pytest.raises(HookError, match="Wrong.other"):
        instrument(sample("vector_add").path, Wrong())
