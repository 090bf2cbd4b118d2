"""Campaigns of faults without a kernel: what is asked of a bench for each model, and what becomes of its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base.errors import FaultKind, Invalid
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.faults.campaign import faults_of, run_campaign
from luthier_py.features.faults.drawing import MODELS, FaultCampaign, InjectedFault
from luthier_py.features.faults.judging import FaultEffect, Injection, effect_of_failure, instruction_limit, judge_fault
from luthier_py.features.settings.run_settings import RunSettings, run_settings

SEEN = {"pc": 0x40, "opcode": "v_add_f32", "lane": 7, "after": 1}


@dataclass
class FakeBench:
    """Mutable: what it was asked. ``answer``: of every run with a fault; ``seen``: what is there without one."""

    answer: Injection
    seen: Mapping[str, Any] | None = None
    written: tuple[tuple[int, ...], ...] = ((0, 3), (2,))
    injected: list[Mapping[str, str]] = field(default_factory=list)

    def inject(self, options: Mapping[str, str], launch: int) -> Injection:
        self.injected.append(options)
        return self.answer

    def find_hit(self, options: Mapping[str, str], launch: int) -> Mapping[str, Any] | None:
        assert options == {"WAVE": "3", "WHEN": "9", "MODEL": "none"} and launch == 2
        return self.seen

    def kernel(self, launch: int) -> str:
        return f"kernel {launch}"


@dataclass(frozen=True)
class FakeSubject:
    of: FakeBench
    name: str = "one.lrec"
    stem: str = "one"

    def content(self) -> object:
        return self.name

    @contextmanager
    def bench(self, options: Mapping[str, str], settings: RunSettings) -> Iterator[FakeBench]:
        yield self.of

    def again(self, options: Mapping[str, str], settings: RunSettings, launch: int) -> str:
        return json.dumps([options, launch])


def fault(model: str) -> InjectedFault:
    return InjectedFault(5, model, wave=3, when=9, bit=4, mask=77, launch=2)


OPTIONS = {
    "flip": {"BIT": "4"}, "flip_two": {"BIT": "4"}, "value": {"MASK": "77"}, "zero": {}, "stuck_0": {"BIT": "4"},
    "stuck_1": {"BIT": "4"},
}  # fmt: skip
OF_OPCODE = {"opcode_0": ("and", 0xFFFFFFEF), "opcode_1": ("or", 0x10), "opcode_flip": ("xor", 0x10)}


@pytest.mark.parametrize("every_lane", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_what_the_tool_is_told(model: str, every_lane: bool) -> None:
    """A fault of an opcode goes where the drawn register is written; of permanent ones all lanes may have one."""
    bench = FakeBench(Injection(FaultEffect.MASKED, None), SEEN)
    found = judge_fault(bench, fault(model), {"INSTRUMENT": "float"}, every_lane)
    if model in OF_OPCODE:
        way, mask = OF_OPCODE[model]
        wanted = {"MODEL": way, "MASK": str(mask), "LANE": "7", "INSTRUMENT": "(float) & (opcode = v_add_f32)"}
    else:
        wanted = {"MODEL": model, "WAVE": "3", "WHEN": "9", **OPTIONS[model]}
    if every_lane and (model in OF_OPCODE or model.startswith("stuck")):
        wanted["LANE"] = "-1"
    assert bench.injected == [wanted] and found.options == wanted


@pytest.mark.parametrize("effect", FaultEffect)
@pytest.mark.parametrize("model", ["flip", "opcode_1"])
def test_where_a_fault_was_is_looked_up_where_the_launch_could_not_tell(model: str, effect: FaultEffect) -> None:
    for seen in (SEEN, None):
        found = judge_fault(FakeBench(Injection(effect, None, "why"), seen), fault(model), {}, False).injection
        if seen is None and model == "opcode_1":
            assert found == Injection(FaultEffect.NOT_HIT, None), "nothing is there whose opcode could be wrong"
            continue
        looked_up = model == "opcode_1" or effect not in (FaultEffect.MASKED, FaultEffect.NOT_HIT)
        assert found.hit == ({**SEEN, "after": None} if looked_up and seen else None)
        assert (found.effect, found.why) == (effect, "why")
    told = Injection(effect, {**SEEN, "after": 5})
    assert judge_fault(FakeBench(told, SEEN), fault(model), {}, False).injection == told


def test_a_campaign_injects_what_is_not_judged_yet(tmp_path: Path) -> None:
    bench, ended = FakeBench(Injection(FaultEffect.SDC, SEEN)), list[None]()

    def rows(faults: int, first: int = 0) -> list[dict[str, Any]]:
        campaign = FaultCampaign(faults, 1, ("flip", "zero"), {"INSTRUMENT": "float"}, first=first)
        return faults_of(FakeSubject(bench), campaign, tmp_path, SETTINGS, lambda: ended.append(None))

    few = rows(3)
    assert [row["number"] for row in few] == [0, 1, 2] and len(bench.injected) == len(ended) == 3
    more = rows(5, first=1)
    assert [row["number"] for row in more] == [1, 2, 3, 4, 5] and more[:2] == few[1:]
    assert len(bench.injected) == 6 and len(ended) == 8
    for row in more:
        options, launch = json.loads(row["again"])
        assert options == {"INSTRUMENT": "float", **bench.injected[row["number"]]} and launch == row["launch"]
        assert (row["file"], row["kernel"], row["pc"]) == ("one.lrec", f"kernel {launch}", 0x40)
        assert int(options["WHEN"]) < bench.written[launch][row["wave"]]


SETTINGS = run_settings("emulator")


@pytest.mark.parametrize("settings", [run_settings(None), RunSettings("hip")])
def test_faults_are_judged_by_the_emulator(settings: RunSettings, tmp_path: Path) -> None:
    subject = FakeSubject(FakeBench(Injection(FaultEffect.MASKED, None)))
    with pytest.raises(Invalid, match="give --device emulator, and for a program emulator:TARGET"):
        run_campaign([subject], FaultCampaign(1, 1, MODELS, {}), tmp_path, settings, lambda: None)


def test_a_kernel_without_registers_to_hit_is_refused(tmp_path: Path) -> None:
    subject = FakeSubject(FakeBench(Injection(FaultEffect.MASKED, None), written=((0, 0), ())))
    with pytest.raises(Invalid, match=r"one.lrec: kernel kernel 0, kernel 1 executes no instruction that was chosen"):
        run_campaign([subject], FaultCampaign(1, 1, MODELS, {}), tmp_path, SETTINGS, lambda: None)


def test_what_a_campaign_cannot_be() -> None:
    with pytest.raises(Invalid, match="model 'melt' is none; choose some of flip,"):
        FaultCampaign(1, 1, ("flip", "melt"), {})
    with pytest.raises(Invalid, match="option LANE: a campaign draws that"):
        FaultCampaign(1, 1, ("flip",), {"INSTRUMENT": "float", "LANE": "3"})


def test_how_long_a_launch_with_a_fault_may_run() -> None:
    assert [instruction_limit(LaunchOptions(), count) for count in (1, 500, 501)] == [10_000, 10_000, 10_020]
    assert instruction_limit(LaunchOptions(instruction_limit=7), 501) == 7


def test_what_a_launch_that_failed_is() -> None:
    """What only the emulator does not let pass is nothing that a fault did."""
    effects = {kind: effect_of_failure(kind.value) for kind in FaultKind}
    assert {kind for kind, effect in effects.items() if effect is not FaultEffect.CRASH} == {
        FaultKind.MODE, FaultKind.SURFACE}  # fmt: skip
    assert effects[FaultKind.MODE] is effects[FaultKind.SURFACE] is FaultEffect.NOT_JUDGED
    assert effect_of_failure(None) is FaultEffect.HANG
