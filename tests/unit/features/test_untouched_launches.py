"""What a tool says that it wants of launches: their arguments, and those of kernels in which nothing of it is."""

from __future__ import annotations

import struct

import pytest

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Ran, run_instrumented
from luthier_py.intrinsics import atomic_add
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Several
from luthier_py.samples import sample


class Waves(Tool):
    total = Variable(u64)

    @hook(lanes="one")
    def count(total: ptr[u64]) -> None:
        atomic_add(total, u64(1))

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, self.count, self.total)

    def report(self, launch):
        return launch.arguments


class Nothing(Waves):
    def instrument(self, m: Mutator) -> None:
        pass


class Idle(Tool):
    def instrument(self, m: Mutator) -> None:
        pass


def ran(tool: Tool) -> Ran:
    code, launch = sample("saxpy").path.read_bytes(), launch_of(sample("saxpy"))
    return run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)


def declared(kind: type[Tool], **what: bool) -> Tool:
    return type(f"Told{kind.__name__}", (kind,), what)()


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("untouched", [False, True])
def test_each_is_declared_for_itself(wants: bool, untouched: bool) -> None:
    for kind in (Waves, Nothing):
        done = ran(declared(kind, wants_arguments=wants, reports_untouched=untouched))
        assert (done.result is not None) == (kind is Waves or untouched)
        assert (done.report is not None) == (wants and done.result is not None)
        if done.report is not None:
            assert struct.unpack_from("<I", done.report) == (1000,)  # the first of saxpy's arguments


def test_of_several_the_one_that_says_so_reports() -> None:
    done = ran(Several(declared(Nothing, reports_untouched=True), Idle()))
    assert list(done.result.notes) == ["ToldNothing"]
