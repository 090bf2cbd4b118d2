"""Pages, plots and tables of reports."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
from io import StringIO

from luthier_py.features.study.report import study_page, study_pictures
from luthier_py.report.columns import align_columns, comma_separated
from luthier_py.report.html import HtmlRow, HtmlTable, Page, Picture, render
from luthier_py.report.plots import available, plot_stacked_bars


def test_texts_of_programs_are_escaped() -> None:
    evil = "<script>alert('x')</script>"
    row = HtmlRow((evil, evil), 0.5, name='"><b>', link=evil, jump=evil, line=evil)
    table = HtmlTable(evil, (evil, "code"), (HtmlRow((evil,), heading=True), row), code=1, note=evil)
    page = render(Page(evil, ((evil, evil),), [table], [Picture(evil, b"png", table)], [evil], [[table], [table]]))
    assert page.count("<script") == 1 and "<b>" not in page and page.count("&lt;script&gt;") >= 40


def test_no_script_but_the_page_s_own_may_run() -> None:
    page = render(Page("p", ()))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert not re.search(r"https?:|url\(|@import| src=(?!\"data:)", page)


def test_columns_can_be_sorted_and_panes_stand_side_by_side() -> None:
    table = HtmlTable("t", ("a", "b"), (HtmlRow(("1", "x"), line="f:1"),), code=1)
    page = render(Page("p", (), [table], [], [], [[table], [table, table]]))
    assert page.count("<button") == 2 * page.count("<table>") == 8 and 'class="split"' in page
    left, right = re.findall(r'<section class="pane".*?</section>', page, re.DOTALL)
    assert left.count("<table>") == 1 and right.count('data-line="f:1"') == 2
    assert 'class="split"' not in render(Page("p", (), [table]))


def test_every_table_of_some_length_can_be_filtered() -> None:
    short, long = (HtmlTable("t", ("a", "b"), (HtmlRow(("1", "x")),) * count, code=1) for count in (8, 9))
    assert render(Page("p", (), [short])).count("<input") == 0
    page = render(Page("p", (), [short, long], [], [], [[long]]))
    assert page.count("<input") == 2 and page.count('<div class="table">') == 3


def headings(page: str) -> list[str]:
    """All that names a part of a page."""
    return re.findall(r'<h\d>(.*?)</h\d>|<summary>(.*?)</summary>|<img alt="(.*?)"', page)


def test_no_title_stands_twice() -> None:
    figure = {"name": "f", "title": "Shares", "unit": "", "share": True, "stack": True, "missing": [], "parts": ["a"],
              "rows": [{"bar": "x", "values": [100.0]}]}  # fmt: skip
    facts = {"title": "Study", "runs": 0, "groups": [], "figures": [figure], "tables": [], "statuses": {},
             "failures": [], "differences": [], "campaigns": []}  # fmt: skip
    for pictures in (study_pictures(facts), {}):
        found = headings(render(study_page(facts, pictures)))
        assert len(found) == len(set(found)) == (4 if pictures else 3)


def test_heat_is_a_colour() -> None:
    assert [HtmlRow((), heat).colour for heat in (0, -1)] == ["", ""]
    assert [HtmlRow((), heat).colour for heat in (0.5, 1, 7)] == [
        "hsl(16 90% 50% / 0.30)", "hsl(16 90% 50% / 0.60)", "hsl(16 90% 50% / 0.60)"]  # fmt: skip


def test_rows_and_headings() -> None:
    named, linked = HtmlRow(("0x10", "s_nop 0"), name="pc10"), HtmlRow(("0x10", "x"), link="pc10")
    rows = (HtmlRow(("a.c:1  x = y;",), heading=True), named, linked)
    page = render(Page("p", (("target", "t"),), [HtmlTable("t", ("pc", "instruction"), rows, code=1)]))
    assert '<td colspan="2">a.c:1  x = y;</td>' in page and '<tr id="pc10">' in page
    assert '<a href="#pc10">0x10</a>' in page and '<td class="code">s_nop 0</td>' in page
    branch = HtmlRow(("0x14", "s_cbranch_scc0 0x10"), jump="pc10")
    page = render(Page("p", (), [HtmlTable("t", ("pc", "instruction"), (named, branch), code=1)]))
    assert '<td class="code">s_cbranch_scc0 <a href="#pc10">0x10</a></td>' in page


def test_a_short_title_has_its_whole_name_and_a_table_its_start() -> None:
    rows = (HtmlRow(("loop 0x10",), heading=True, name="loop10"), HtmlRow(("0x10", "s_nop 0"), name="pc10"))
    table = HtmlTable("t", ("pc", "instruction"), rows, 1, start="loop10")
    page = render(Page("k...", (), panes=[[table]], whole="kernel"))
    assert '<p class="whole">kernel</p>' in page and '<table data-start="loop10">' in page
    assert '<tr class="heading" id="loop10">' in page


def test_plots_are_png() -> None:
    assert available()
    png, again = (plot_stacked_bars(["a", "b"], {"x": [1, 2], "y": [3, 4]}, "title", "cycles") for _ in range(2))
    assert png.startswith(b"\x89PNG\r\n") and png == again


def test_columns_line_up() -> None:
    assert align_columns(("n", "name"), [(1, "a"), (100, "bcd")], left=1) == "  n  name\n  1  a\n100  bcd"
    assert align_columns(("n",), [], left=0) == "n"
    rows = [(1, "", "a"), (2, "", "b")]
    assert align_columns(("n", "source", "text"), rows, left=2) == "n  text\n1  a\n2  b"  # nothing is known of sources
    assert align_columns(("n", "source", "text"), [], left=2) == "n  source  text"


def test_csv_can_be_read_back() -> None:
    rows = [{"a": 1, "text": 'v1, "x"\n'}, {"a": None, "text": ""}]
    read = list(csv.DictReader(StringIO(comma_separated(rows))))
    assert read == [{"a": "1", "text": 'v1, "x"\n'}, {"a": "", "text": ""}]
    assert comma_separated([]) == "\r\n"


def test_csv_has_no_formulas() -> None:
    evil = ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1"]
    text = comma_separated([{"=name": cell, "n": -1, "f": -0.5} for cell in evil])
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert [row["'=name"] for row in rows] == [f"'{cell}" for cell in evil]
    assert {row["n"] for row in rows} == {"-1"} and {row["f"] for row in rows} == {"-0.5"}
