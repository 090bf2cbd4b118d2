"""docs/comparing.md, and the trace of docs/time.md: their commands are typed, and give what they show."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.features.exec.execute import execute

ROOT = Path(__file__).parents[2]
BLOCKS = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)


def section(title: str, page: str = "comparing") -> list[str]:
    """The blocks of one section of a page, without their indentation."""
    text = (ROOT / "docs" / f"{page}.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    return [re.sub("^    ", "", block, flags=re.MULTILINE).strip("\n") for block in BLOCKS.findall(text)]


def lines(block: str) -> list[str]:
    return block.replace("\\\n", "").splitlines()


def test_two_runs_and_two_builds(typed: Callable[[str], Any]) -> None:
    _, commands, runs, code, builds = section("Two runs, two builds")
    done = [typed(line) for line in lines(commands)]
    assert [each.code for each in done] == [0, 0, 0]
    assert done[-1].out.rstrip() == runs
    compared = typed(code)
    assert builds in compared.out and typed(f"{code} --fail-on-change").code == 1
    assert typed("luthier compare before.json before.json --fail-on-change").code == 0


def cache_by_tool(run: Callable[..., Any]) -> Callable[..., Any]:
    """The two commands run one program: under each tool once."""
    runs: dict[str | None, Any] = {}

    def runner(command: Any, settings: Any, tool: str | None, *more: Any, **given: Any) -> Any:
        if tool not in runs:
            runs[tool] = run(command, settings, tool, *more, **given)
        return runs[tool]

    return runner


def test_budgets(typed: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.setattr("luthier_py.features.budget.judge.execute", cache_by_tool(execute))
    _, command, budget, verdict = section("Budgets")
    [written] = lines(command)
    assert typed(written).code == 0 and (tmp_path / "budget.toml").read_text().rstrip() == budget
    changed = budget.replace("conflicts = 3968", "conflicts = 0").replace("vgprs = 16", "vgprs = 24")
    changed = changed.replace("instructions = 2256", 'instructions = {max = 2200, tolerance = "3%"}')
    (tmp_path / "budget.toml").write_text(changed)
    done = typed(written.replace("--write", "--budget"))
    assert (done.code, done.out.rstrip()) == (1, verdict)


def test_traces(typed: Callable[[str], Any], tmp_path: Path) -> None:
    blocks = section("Traces", "time")
    at = next(at for at, block in enumerate(blocks) if "--trace" in block)
    [command] = lines(blocks[at])
    assert typed(command).code == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert json.loads(blocks[at + 1]) in events and sum(event["name"].startswith("work-group") for event in events) == 8
    assert typed(command.replace("luthier run", "luthier run --device hip")).code == 2  # there is no model of a GPU
