"""`luthier coverage`: operations of a target as table and as data, wrong usage, and the tool for programs."""

from __future__ import annotations

import json
import sys

import pytest

from luthier_py import cli
from luthier_py.features.coverage.command import TOOL
from luthier_py.rewrite.tool.discover import registered_tools
from luthier_py.tools.exactness import Exactness


def luthier(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["luthier", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code or 0, *capsys.readouterr()


def test_a_target(capsys, monkeypatch):
    code, out, _ = luthier(capsys, monkeypatch, "coverage", "gfx90a")
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("gfx90a: ") and "operations: " in lines[0]
    assert any("S_RFE_B64" in line and "refused" in line and "trap handler" in line for line in lines)
    assert not any(line.startswith(" V_ADD_U32 ") for line in lines) and lines == [line.rstrip() for line in lines]
    code, out, _ = luthier(capsys, monkeypatch, "coverage", "gfx90a", "--match", "^v_add_u32$")
    (line,) = (line for line in out.splitlines() if line.split()[:1] == ["V_ADD_U32"])
    assert code == 0 and "exact" in line and "reference reader, gfx90a" in line and "S_RFE_B64" not in out
    code, out, _ = luthier(capsys, monkeypatch, "coverage", "gfx90a", "--json")
    facts = json.loads(out)
    assert code == 0 and facts["target"] == "gfx90a" and sum(facts["counts"].values()) == len(facts["list"])


@pytest.mark.parametrize(("arguments", "words"), [
    (("gfx9",), "there is no target gfx9"), (("GFX90A",), "there are gfx801"), (("gfx90a:xnack+",), "there is no"),
    (("gfx90a", "--match", "("), "not a regular"), (("--match", "x", "--", "true"), "--kernels"),
    (("gfx90a", "--output", "x.json"), "--output"),
    (("--json", "--", "true"), "--json"),
])
def test_what_makes_no_sense(capsys, monkeypatch, arguments, words):
    code, out, err = luthier(capsys, monkeypatch, "coverage", *arguments)
    assert code == 2 and not out and words in err and len(err.splitlines()) == 1


def test_the_tool_is_installed():
    assert registered_tools()[TOOL].load() is Exactness
