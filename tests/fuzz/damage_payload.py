"""Harm in a payload: what a wrong compiler or a wrong hook would hand to injection, which copies it in good faith.

In: a Subject, a random.Random. Out: Damaged with a claim that knows the payload as it is. Invariant: all that
injection asks of a payload holds, its reads and writes too; only what it does is harmful.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

from damage_copy import Copy, Damaged
from damage_harms import INSERTED, assembled, registers

from luthier_py.base.errors import LuthierError
from luthier_py.isa import NO_REGS, InstructionSet
from luthier_py.rewrite import pipeline
from luthier_py.rewrite.jit.payload import Payload

NEED_PLACES = ("{back}", "{over}", "{astray}", "{pending}")


def possible(spellings: tuple[str, ...]) -> list[str]:
    """Those that say the same wherever they stand."""
    return [text for text in spellings if not any(place in text for place in NEED_PLACES)]


def in_payload(name: str, copy: Copy, rng: random.Random) -> Damaged | None:
    """The copy that is made when one payload begins or ends with a spelling of the class."""
    spellings = possible(INSERTED[name])
    chosen = registers(copy, rng.choice(copy.inserted), rng)
    if chosen is None:
        return None
    code = assembled(copy.isa, rng.choice(spellings).format(**chosen))
    if code is None:
        return None
    which, first = rng.random(), rng.random() < 0.5
    made = copy.subject.made

    def compile_hooks(*args: Any) -> dict[Any, Payload]:
        payloads = dict(_compile(*args))
        keys = list(payloads)
        key = keys[int(which * len(keys))]
        payloads[key] = _with(copy.isa, payloads[key], code, first)
        return payloads

    with mock.patch.object(pipeline, "compile_hooks", compile_hooks), mock.patch.object(pipeline, "prove", _trust):
        planned = pipeline.Planned(made.obj, made.program, made.facts, made.edits, {})
        try:
            again = pipeline.carry_out(planned)
        except (LuthierError, StopIteration):  # injection has its own reasons not to
            return None
    return Damaged(again.data, again.patched)


_compile: Callable[..., Any] = pipeline.compile_hooks


def _trust(*_: object) -> None:
    """The proof's turn comes later."""


def _with(isa: InstructionSet, payload: Payload, code: bytes, first: bool) -> Payload:
    more = isa.decode_all(code)
    reads = writes = NO_REGS
    for inst in more:
        reads, writes = reads | inst.reads, writes | inst.writes
    instrs = (*more, *payload.instrs) if first else (*payload.instrs, *more)
    return replace(payload, instrs=instrs, reads=payload.reads | reads, writes=payload.writes | writes)
