"""A campaign of damage: each trial damages one copy once, asks the proof, and the emulator whether it matters.

In: a seed, how many trials. Out: a Trial for each. Invariant: trial ``number`` of ``seed`` is the same whatever ran
before it. Harmful: the clone, or the original in the copy, leaves other memory than before, faults, or does not end.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import resource
import sys
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import damage_subjects
from damage_bytes import DAMAGES
from damage_copy import Copy, Damaged, check, copy_of
from damage_harms import HARMS, INSERTED
from damage_payload import in_payload, possible
from damage_subjects import Memory, Subject, subject, unharmed

from luthier_py.base.errors import LuthierError

CLASSES: dict[str, tuple[str, ...]] = {
    "bytes": tuple(DAMAGES), "insertion": tuple(HARMS),
    "payload": tuple(name for name, spellings in INSERTED.items() if possible(spellings)),
}
"""What is damaged. ``insertion``: what links the copy to the outside, too."""
ONCE = [(family, name) for family in ("bytes", "insertion") for name in CLASSES[family]]
PAYLOADS = 11  # classes for each subject in turn: many make the same instructions, and each costs an injection
SHIFT = 29  # so that the first trials of neighbouring subjects are of different classes
TRIES, SAME = 30, 8
JUDGED = 0.02  # of the refused ones: how many would have done harm
MEMORY_BYTES = 12 << 30  # of a process, most of it only reserved
UNKNOWN = ("the emulator does not know", "on this computer")  # an instruction; memory: nothing is shown then


@dataclass(frozen=True, slots=True)
class Trial:
    """``harmful``: None where it was not tried. ``refused``: by the class of the error, "" if the proof passed it."""

    number: int
    family: str
    name: str
    subject: str
    emulated: bool
    refused: str
    reason: str
    harmful: bool | None
    how: str
    """It did harm."""

    @property
    def missed(self) -> bool:
        return not self.refused and self.harmful is True


def turn(number: int) -> tuple[str, str]:
    """Family and class of a trial: each subject gets all of them in turn, of the payload's ever other ones."""
    every = len(damage_subjects.names())
    nth, at = divmod(number, every)
    again, place = divmod(nth, len(ONCE) + PAYLOADS)
    place = (place + SHIFT * at) % (len(ONCE) + PAYLOADS)
    if place < len(ONCE):
        return ONCE[place]
    names = CLASSES["payload"]
    return "payload", names[((again * every + at) * PAYLOADS + place - len(ONCE)) % len(names)]


def damaged(seed: int, number: int, one: Subject) -> tuple[str, str, Damaged] | None:
    """Family, class and damage of a trial: the class whose turn it is, or any if the copy has no such thing."""
    rng = random.Random(f"damage {seed} {number}")
    copy = copy_of(one)
    for each in [turn(number)] * SAME + [rng.choice(ONCE) for _ in range(TRIES)]:
        made = _made(*each, copy, rng)
        if made is not None:
            return *each, made
    return None


def _made(family: str, name: str, copy: Copy, rng: random.Random) -> Damaged | None:
    if family == "payload":
        return in_payload(name, copy, rng)
    return (DAMAGES if family == "bytes" else HARMS)[name](copy, rng)


def trial(seed: int, number: int, one: Subject, judged: float = JUDGED) -> Trial | None:
    made = damaged(seed, number, one)
    if made is None:
        return None
    family, name, what = made
    refused = reason = how = ""
    try:
        check(one, what)
    except LuthierError as error:
        refused, reason = type(error).__name__, error.message
    except Exception as error:  # no proof either, but not as it should say so
        refused, reason = f"crash: {type(error).__name__}", str(error)
    harmful: bool | None = None
    if one.run is not None and (not refused or random.Random(f"judge {seed} {number}").random() < judged):
        how = harm(one, what.data, family != "bytes" or copy_of(one).only_clones(what.data))
        harmful = None if any(why in how for why in UNKNOWN) else bool(how)
        gc.collect()  # memory of devices
    return Trial(number, family, name, one.name, one.run is not None, refused, reason[:200], harmful, how)


@cache
def _before(one: Subject) -> dict[str, Memory]:
    return unharmed(one)


def harm(one: Subject, data: bytes, only_clone: bool = False) -> str:
    """What goes wrong when the copy's kernels are launched; empty if nothing does."""
    assert one.run is not None
    for name, memory in _before(one).items():
        if only_clone and name != one.clone:
            continue
        try:
            if one.run(data, name) != memory:
                return f"{name} leaves other memory"
        except LuthierError as error:
            return f"{name}: {type(error).__name__}: {error.message}"[:200]
    return ""


def campaign(
    seed: int, count: int, jobs: int, only: Iterable[str] | None = None, judged: float = JUDGED,
    known: Collection[int] = (),
) -> Iterator[Trial]:
    """Trial ``number`` damages subject ``number`` modulo their number; each subject has processes of its own.
    ``known``: trials that are not wanted again."""
    names = damage_subjects.names()
    chosen = [(at, name) for at, name in enumerate(names) if only is None or name in only]
    random.Random(seed).shuffle(chosen)  # so that a part of a campaign is one of everything
    shares = [[number for number in range(at, count, len(names)) if number not in known] for at, _ in chosen]
    with ThreadPoolExecutor(jobs) as pool:
        for trials in pool.map(partial(_in_process, seed, judged), [name for _, name in chosen], shares):
            yield from trials


def _in_process(seed: int, judged: float, name: str, numbers: list[int]) -> list[Trial]:
    """Trials in a process of their own; when it dies, that trial did harm, and another goes on behind it."""
    found: list[Trial] = []
    context = multiprocessing.get_context("fork")
    while numbers:
        reading, writing = context.Pipe(duplex=False)
        child = context.Process(target=_tell, args=(seed, name, numbers, judged, writing))
        child.start()
        writing.close()
        reached = numbers[0]
        while True:
            try:
                told = json.loads(reading.recv())
            except EOFError:
                break
            if isinstance(told, int):
                reached = told
            else:
                found.append(Trial(**told))
        child.join()
        if child.exitcode == 0:
            break
        print(f"{name}: the process of trial {reached} ended with {child.exitcode}", file=sys.stderr)
        found.append(Trial(reached, "bytes", "the process ended", name, True, "", "", None, str(child.exitcode)))
        numbers = numbers[numbers.index(reached) + 1 :]
    return found


def _tell(
    seed: int, name: str, numbers: list[int], judged: float, writing: multiprocessing.connection.Connection
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    one = subject(name)
    for number in numbers if one is not None else ():
        assert one is not None
        if number == numbers[0]:
            gc.freeze()  # the subject stays
        writing.send(json.dumps(number))
        made = trial(seed, number, one, judged)
        if made is not None:
            writing.send(json.dumps(asdict(made)))
    writing.close()
    os._exit(0)


def read(path: Path) -> list[Trial]:
    return [Trial(**json.loads(line)) for line in path.read_text().splitlines()]
