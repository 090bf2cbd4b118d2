"""Reports as one HTML page: facts, pictures, tables that can be sorted, and panes that scroll beside each other.

In: a Page. Out: its text. Invariant: every text that comes from a program is escaped, and the page loads nothing and
runs no script but its own, which its policy says.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass

if TYPE_CHECKING:
    from jinja2 import Template

BAR = "#f2540d66"
TEMPLATES = Path(__file__).with_name("templates")
SVG = "image/svg+xml"


@dataclass(frozen=True, slots=True)
class HtmlRow:
    """One line of a table. ``heat`` from 0 to 1 colours it; a ``heading`` has one cell, over all columns.

    Rows of equal ``line``, which names a line of a source file, are shown together.
    """

    cells: tuple[str, ...]
    heat: float = 0.0
    heading: bool = False
    name: str = ""  # others can link to it
    link: str = ""  # name of the row that the first cell leads to
    jump: str = ""  # name of the row that the last word of the code leads to
    line: str = ""

    @property
    def colour(self) -> str:
        """The row's background as CSS has it; empty without heat."""
        return f"hsl(16 90% 50% / {min(max(self.heat, 0.0), 1.0) * 0.6:.2f})" if self.heat > 0 else ""


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """``code``: number of the column that holds code; columns before it and after it are numbers or short texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[HtmlRow, ...]
    code: int
    note: str = ""
    start: str = ""  # name of the row that is shown first where the table is longer than its pane


@dataclass(frozen=True, slots=True)
class Picture:
    """``title`` is in the picture. ``table`` has its numbers, which are shown on request. ``form``: its media type; SVG
    is shown as large as it is."""

    title: str
    image: bytes
    table: HtmlTable | None = None
    form: str = "image/png"

    @property
    def source(self) -> str:
        """The image itself as a data URL, so that the page needs no other file."""
        return f"data:{self.form};base64,{base64.b64encode(self.image).decode()}"


@dataclass(frozen=True, slots=True)
class Page:
    """``panes``: tables that stand side by side, under the others; the page then has the window's height. ``whole``:
    the name of which the title has a short form."""

    title: str
    facts: tuple[tuple[str, str], ...]
    tables: Sequence[HtmlTable] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    panes: Sequence[Sequence[HtmlTable]] = ()
    whole: str = ""


def render(page: Page) -> str:
    """The page as HTML."""
    style, script = _file("page.css"), _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(page=page, style=style, script=script, script_hash=digest)


def notebook_table(caption: str, rows: Sequence[Mapping[str, object]], bars: Collection[str] = ()) -> str:
    """Rows as a table for a notebook's page; columns are those of any row. ``bars``: columns of numbers that are shown
    as bars, too."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    most = {column: max((_amount(row.get(column)) for row in rows), default=0.0) for column in bars}

    def cell(row: Mapping[str, object], column: str) -> str:
        value = row.get(column)
        part = _amount(value) / most[column] if most.get(column) else 0.0
        style = f' style="background:linear-gradient(90deg,{BAR} {part:.0%},transparent {part:.0%})"' if part else ""
        return f"<td{style}>{_cell(value)}</td>"

    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(cell(row, column) for column in columns)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _amount(value: object) -> float:
    return abs(float(value)) if isinstance(value, (int, float)) else 0.0


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))


@cache
def _file(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("luthier_py.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html")
