"""What becomes of one fault, on a bench that only answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from luthier_py.features.faults.drawing import InjectedFault
from luthier_py.features.faults.judging import FaultEffect, Injection, judge_fault

PLACE = {"pc": 64, "opcode": "v_add_f32", "lane": 3}


class Answers:
    written = ((4,),)

    def __init__(self, injection: Injection, place: Mapping[str, Any] | None = PLACE) -> None:
        self.injection, self.place = injection, place
        self.asked: list[Mapping[str, str]] = []

    def inject(self, options: Mapping[str, str], launch: int) -> Injection:
        self.asked.append(options)
        return self.injection

    def find_hit(self, options: Mapping[str, str], launch: int) -> Mapping[str, Any] | None:
        assert options == {"WAVE": "0", "WHEN": "2", "MODEL": "none"}
        return self.place

    def kernel(self, launch: int) -> str:
        return "k"


def fault(model: str) -> InjectedFault:
    return InjectedFault(0, model, wave=0, when=2, bit=5, mask=7)


@pytest.mark.parametrize("model", ["flip", "opcode_flip"])
@pytest.mark.parametrize("effect", [FaultEffect.CRASH, FaultEffect.HANG, FaultEffect.SDC, FaultEffect.NOT_JUDGED])
def test_where_it_is_of_a_launch_that_could_not_tell(model: str, effect: FaultEffect) -> None:
    found = judge_fault(Answers(Injection(effect, None, "why")), fault(model), {}, False).injection
    assert (found.effect, found.hit, found.why) == (effect, {**PLACE, "after": None}, "why")


@pytest.mark.parametrize("effect", [FaultEffect.CRASH, FaultEffect.MASKED])
def test_what_the_launch_told_is_kept(effect: FaultEffect) -> None:
    told = {**PLACE, "after": 9}
    assert judge_fault(Answers(Injection(effect, told)), fault("flip"), {}, False).injection.hit == told


@pytest.mark.parametrize("effect", [FaultEffect.NOT_HIT, FaultEffect.MASKED])
def test_a_fault_without_effect_is_nowhere(effect: FaultEffect) -> None:
    assert judge_fault(Answers(Injection(effect, None)), fault("flip"), {}, False).injection.hit is None


def test_an_opcode_that_nothing_executes_is_not_hit() -> None:
    bench = Answers(Injection(FaultEffect.CRASH, None), place=None)
    assert judge_fault(bench, fault("opcode_0"), {}, False).injection == Injection(FaultEffect.NOT_HIT, None)
    assert not bench.asked


@pytest.mark.parametrize("model, lane", [("flip", None), ("stuck_1", "-1"), ("opcode_1", "-1")])
def test_every_lane_is_of_permanent_faults(model: str, lane: str | None) -> None:
    bench = Answers(Injection(FaultEffect.SDC, PLACE))
    judge_fault(bench, fault(model), {}, True)
    assert bench.asked[0].get("LANE") == lane
