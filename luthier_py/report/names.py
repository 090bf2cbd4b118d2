"""Names of files and folders for things that a program has named: kernels, and what tools make of them.

In: any text. Out: a name that every file system takes, inside the folder that it is put into. Invariant: a FileNames
gives no name twice, and no two that differ in case alone, which some file systems take for one.
"""

from __future__ import annotations

import re
from collections import Counter

from luthier_py.base.names import short_digest
from luthier_py.base.records import dataclass, field

LONGEST = 100  # characters, which are bytes
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(slots=True)
class FileNames:
    """Mutable: the names that are taken."""

    taken: Counter[str] = field(default_factory=Counter)

    def of(self, text: str) -> str:
        """A name for one more thing that is called ``text``; every call gives a new one."""
        wanted = name = file_name(text)
        while self.taken[name.casefold()]:
            self.taken[wanted.casefold()] += 1
            name = f"{wanted}-{self.taken[wanted.casefold()]}"
        self.taken[name.casefold()] = 1
        return name


def file_name(text: str) -> str:
    """``text`` itself where it is a plain name; otherwise its plain characters, and a digest that distinguishes
    it."""
    name = _UNSAFE.sub("_", text)[:LONGEST]
    if name == text and text and not text.startswith((".", "-")):
        return name
    return f"{name.lstrip('.-') or 'name'}-{short_digest(text)}"
