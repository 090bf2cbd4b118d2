"""What becomes of a copy by a wrong injector.

In: a code object, a subject, what is wrong. Out: Judged. Invariant: HARMFUL is said only of a copy that the proof let
pass and that leaves other memory or other counts on the emulator than the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from injectors.subjects import Subject
from luthier_py.base.errors import CheckFailed, LuthierError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.rewrite.jit import compile as hooks
from luthier_py.rewrite.pipeline import Instrumented, Planned, carry_out, plan

Patch = Callable[[pytest.MonkeyPatch], None]
Left = tuple[dict[int, bytes], dict[str, bytes]]


class Outcome(Enum):
    """Of one wrong injector on one subject."""

    SAME = "the copy is the right one"
    NOT_MADE = "no copy was made"
    REFUSED = "refused"
    HARMLESS = "harmless"
    HARMFUL = "passes with harm"


@dataclass(frozen=True, slots=True)
class Judged:
    outcome: Outcome
    why: str = ""


def put(owner: Any, name: str, make: Callable[[Any], Any]) -> Patch:
    """``make`` gets what was there."""
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(owner, name, make(getattr(owner, name)))

    return patch


def several(*patches: Patch) -> Patch:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for each in patches:
            each(monkeypatch)

    return patch


def compiled_anew(*patches: Patch) -> Patch:
    """Of what compiles hooks, which keeps what it has made."""
    return several(lambda monkeypatch: monkeypatch.setattr(hooks, "_payloads", {}), *patches)


class Court:
    """Judges copies of one code object (mutable: keeps what is right)."""

    def __init__(self, code: bytes) -> None:
        self.code, self.target = code, load(code).target
        self.right: dict[str, tuple[Instrumented, Any]] = {}
        self.lefts: dict[str, Left] = {}
        self.planned: dict[str, tuple[Planned, Any]] = {}

    def made(self, subject: Subject) -> tuple[Instrumented, Any]:
        """Tools want the same each time: only what carries it out may be wrong."""
        if subject.name not in self.planned:
            tool = subject.tool()
            self.planned[subject.name] = plan(self.code, tool, kernels=[subject.kernel]), tool
        planned, tool = self.planned[subject.name]
        return carry_out(planned), tool

    def known(self, subject: Subject) -> tuple[Instrumented, Any]:
        """The right copy."""
        if subject.name not in self.right:
            self.right[subject.name] = self.made(subject)
        return self.right[subject.name]

    def known_left(self, subject: Subject) -> Left:
        """What the right copy leaves: the original's memory, but where it is to change."""
        if subject.name not in self.lefts:
            self.lefts[subject.name] = left = self.left(subject, *self.known(subject))
            bare = run_original(EmulatorDevice(self.target), self.code, subject.launch)
            assert ({n: data.tobytes() for n, data in bare.outputs.items()} == left[0]) is not subject.changes
        return self.lefts[subject.name]

    def left(self, subject: Subject, made: Instrumented, tool: Any) -> Left:
        ran = run_instrumented(EmulatorDevice(self.target), made, tool, subject.launch)
        return ({n: data.tobytes() for n, data in ran.outputs.items()},
                {name: bytes(data) for name, data in ran.result.memory.items()})

    def judge(self, subject: Subject, wrong: Patch) -> Judged:
        right, _ = self.known(subject)
        with pytest.MonkeyPatch.context() as monkeypatch:
            wrong(monkeypatch)
            try:
                made, tool = self.made(subject)
            except CheckFailed as error:
                return Judged(Outcome.REFUSED, error.message)
            except (LuthierError, AssertionError, IndexError, KeyError, StopIteration) as error:
                return Judged(Outcome.NOT_MADE, f"{type(error).__name__}: {error}")
        if made.data == right.data and made.patched.claim == right.patched.claim:
            return Judged(Outcome.SAME)
        left = self.known_left(subject)
        try:
            found = self.left(subject, made, tool)
        except LuthierError as error:
            return Judged(Outcome.HARMFUL, f"it does not run: {error}")
        if found[0] != left[0]:
            return Judged(Outcome.HARMFUL, "the application's memory differs")
        return Judged(Outcome.HARMFUL, "counts differ") if found[1] != left[1] else Judged(Outcome.HARMLESS)
