"""What a mutation of our own source is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

ROOMS = "program/analysis", "rewrite/inject", "rewrite/jit", "binary/link", "proof", "rewrite/claim_check"
"""Whose lines are made wrong; each has a folder of tests."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """``file``: below luthier_py."""

    file: str
    before: str
    after: str

    @property
    def room(self) -> str:
        return next(room for room in ROOMS if f"{PurePath(self.file).with_suffix('')}/".startswith(f"{room}/"))


def of(file: str, *pairs: tuple[str, str]) -> tuple[Mutation, ...]:
    return tuple(Mutation(file, before, after) for before, after in pairs)
