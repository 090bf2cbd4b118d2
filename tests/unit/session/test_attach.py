"""Attaching: how the worker is told which tool, and what is refused before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from luthier_py.errors import Invalid
from luthier_py.session.attach import _place_of, attach
from luthier_py.tool import Tool, load_tool, tools

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
