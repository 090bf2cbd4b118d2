"""Attaching: how the worker is told which tool, and what is refused before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.features.exec.attach import SHOWN_ROWS, Attached, _place_of, attach
from luthier_py.rewrite.tool import Tool, load_tool, tools

OWN = """
from luthier_py import Mutator, Tool

class Own(Tool):
    "Does nothing."
    def instrument(self, m: Mutator) -> None:
        pass
"""


def test_registered_tools_go_by_name() -> None:
    assert _place_of(tools()["instr_count"]) == "instr_count"


def test_others_go_by_file(tmp_path: Path) -> None:
    path = tmp_path / "own_tool.py"
    path.write_text(OWN)
    made = type(load_tool(str(path)))
    assert _place_of(made) == f"{path}:Own" and load_tool(_place_of(made)).name == "Own"


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match="no tool is called nothing"):
        attach("nothing")
    with pytest.raises(Invalid, match="has no option wrong"):
        attach("instr_count", wrong=1)
    inline = type("Inline", (Tool,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Inline", inline, raising=False)
    with pytest.raises(Invalid, match="put it into a file of its own"):
        attach(inline)


def test_notebooks_show_the_last_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = [{"launch": n, "kernel": "f<int>", "grid": [4, 1, 1], "report": {"count": 7 * n}} for n in range(150)]
    facts = {"tool": "instr_count", "launches": 151, "instrumented": 150, "reports": launches}
    monkeypatch.setattr("luthier_py.features.exec.attach._ask_verdict", lambda: facts)
    sums, _, shown = Attached()._repr_html_().partition("</table>")
    assert "<caption>instr_count: by kernel</caption>" in sums and ">150</td>" in sums
    assert f">{sum(7 * n for n in range(150))}</td>" in sums and sums.count("linear-gradient(90deg,#f2540d66 100%") == 2
    assert f"<caption>instr_count: 150 of 151 launches counted, the last {SHOWN_ROWS}</caption>" in shown
    assert shown.count("<tr>") == 1 + SHOWN_ROWS and "<td>f&lt;int&gt;</td><td>4x1x1</td><td>1043</td>" in shown
    assert "<td>343</td>" not in shown  # of launch 49
