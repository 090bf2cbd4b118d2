"""What a mutation of our own source is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """``file``: below luthier_py."""

    file: str
    before: str
    after: str

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")


def of(file: str, *pairs: tuple[str, str]) -> tuple[Mutation, ...]:
    return tuple(Mutation(file, before, after) for before, after in pairs)
