"""Reports as one HTML page: facts, pictures, and tables whose rows have a colour by their heat.

In: a Page. Out: its text. Invariant: every text that comes from a program is escaped, and the page loads nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. ``heat`` from 0 to 1 colours it; a ``heading`` has one cell, over all columns."""

    cells: tuple[str, ...]
    heat: float = 0.0
    heading: bool = False
    name: str = ""  # others can link to it
    link: str = ""  # name of the row that the first cell leads to

    @property
    def colour(self) -> str:
        return f"hsl(16 90% 50% / {min(max(self.heat, 0.0), 1.0) * 0.6:.2f})" if self.heat > 0 else ""


@dataclass(frozen=True, slots=True)
class Table:
    """``code``: number of the column that holds code; columns before it and after it are numbers or short texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    code: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    png: bytes

    @property
    def data(self) -> str:
        return base64.b64encode(self.png).decode()


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    facts: tuple[tuple[str, str], ...]
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()


def render(page: Page) -> str:
    """The page as HTML."""
    return _template().render(page=page)


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("luthier_py.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html")
