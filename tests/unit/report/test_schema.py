"""The JSON that runs write: one schema for all writers, and no value that JSON does not have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from luthier_py.base.errors import ToolError
from luthier_py.cli import app
from luthier_py.report.output import SCHEMA, Output
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.tool import LaunchResult, Tool, as_data
from luthier_py.samples import sample

DOCS = Path(__file__).resolve().parents[3] / "docs"
SPECIFIED = json.loads((DOCS / "output.schema.json").read_text())
SAXPY = ["run", str(sample("saxpy").path), "--kernel", "saxpy", "--grid", "4", "--block", "256",
         "u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"]  # fmt: skip


def strict(text: str) -> Any:
    """JSON as others read it: Python alone takes NaN."""
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def run(*more: str, command: Sequence[str] = SAXPY) -> Any:
    done = CliRunner().invoke(app, [*command, *more])
    assert done.exit_code == 0, done.output
    return strict(done.stdout)


def check(document: Any) -> None:
    import jsonschema  # takes long

    jsonschema.validate(document, SPECIFIED, jsonschema.Draft202012Validator)


def keys(schema: Any) -> set[str]:
    """Every key that the schema describes."""
    properties = schema.get("properties", {})
    inner = (*schema.get("$defs", {}).values(), *properties.values(), *filter(None, [schema.get("items")]))
    return set(properties).union(*map(keys, inner))


def used(document: Any) -> set[str]:
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    return set(document if isinstance(document, dict) else ()).union(*map(used, inner))


def test_the_schema_is_one_itself() -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(SPECIFIED)
    assert SPECIFIED["properties"]["schema"]["const"] == SCHEMA


def test_both_writers_follow_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    shown = run("-t", "instr_count", "--clock", "model", "--json", "--output", str(path), "--save", str(tmp_path))
    written = strict(path.read_text())
    beyond = ["u32=1001" if text == "u32=1000" else text for text in SAXPY]
    looked_at = run("--check", "bounds,races", "--shuffle", "1", "--json", command=beyond)
    assert looked_at["run"]["findings"]
    for document in (shown, written, looked_at):
        check(document)
    assert {key: shown[key] for key in ("schema", "tool", "options", "launches")} == {
        key: written[key] for key in ("schema", "tool", "options", "launches")}  # fmt: skip
    assert shown["launches"][0]["report"]["instructions"] == 400
    assert keys(SPECIFIED) - used(shown) - used(looked_at) == {"reason", "ranges"}  # none refused, nothing marked


def test_a_run_without_a_tool_follows_the_schema() -> None:
    document = run("--json")
    check(document)
    assert (document["tool"], document["launches"], document["verdict"]) == (None, [], None)


@pytest.mark.parametrize("change", [{"schema": 2}, {"launches": [{}]}, {"more": 1}, {"verdict": {}}, {"tool": 1}])
def test_the_schema_refuses_other_documents(change: dict[str, Any]) -> None:
    import jsonschema

    document = {"schema": 1, "tool": None, "options": {}, "launches": [], "verdict": None}
    check(document)
    with pytest.raises(jsonschema.ValidationError):
        check({**document, **change})


class Colour(Enum):
    RED = 1


@dataclass
class Pair:
    first: int
    second: Any


ODD = {
    "set": {3, 10, 1}, "mixed": frozenset({"a", 1}), "nan": float("nan"), "inf": [float("inf"), -float("inf")],
    "numpy": np.arange(3, dtype=np.uint64), "number": np.float32(0.5), "none": np.float64("nan"), "tuple": (1, "x"),
    "pair": Pair(1, {2}), "enum": {Colour.RED: Colour.RED}, "keys": {7: 1}, "path": Path("a/b"), "yes": np.bool_(True),
    "large": 2**64 - 1, "text": "\udc80\n",
}  # fmt: skip
PLAIN = {
    "set": [1, 3, 10], "mixed": ["a", 1], "nan": "NaN", "inf": ["Infinity", "-Infinity"], "numpy": [0, 1, 2],
    "number": 0.5, "none": "NaN", "tuple": [1, "x"], "pair": {"first": 1, "second": [2]}, "enum": {"1": 1},
    "keys": {"7": 1}, "path": "a/b", "yes": True, "large": 2**64 - 1, "text": "\udc80\n",
}  # fmt: skip


class Odd(Tool):
    """Reports all kinds of things."""


def launched() -> LaunchResult:
    return LaunchResult(0, "k", (1, 1, 1), (64, 1, 1), {})


def test_reports_of_any_data_are_json(tmp_path: Path) -> None:
    tool = Odd(LUTHIER_OUTPUT=tmp_path / "o.json", LUTHIER_REPORT=tmp_path / "r")
    output = Output(tool, StringIO())
    output.launch(launched(), ODD, "\udc80")
    output.finish(Verdict(tool, launches=1, selected=1, instrumented=1))
    document = strict((tmp_path / "o.json").read_text())
    check(document)
    assert document["launches"][0]["report"] == PLAIN == strict((tmp_path / "r" / "k" / "Odd.json").read_text())


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"a": [1, object()]}, r"report of Odd.*a\[1\] is object, which is no data"),
        ({"a": b"x"}, "a is bytes"),
        ({(1, 2): 3}, r"has the key \(1, 2\)"),
        ({1: 2, "1": 3}, "two keys 1"),
        ({"a": Odd}, "is type"),
        ({"a": {1, None, Ellipsis}}, "is ellipsis"),
    ],
)
def test_what_is_no_data_is_refused_at_its_launch(report: Any, message: str, form: str, tmp_path: Path) -> None:
    output = Output(Odd(LUTHIER_OUTPUT=tmp_path / f"o.{form}"), StringIO())
    with pytest.raises(ToolError, match=message):
        output.launch(launched(), report, "")


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ToolError, match="contains itself"):
        as_data(circle)


def test_the_page_says_what_the_schema_has() -> None:
    text = (DOCS / "output.md").read_text()
    assert f"`schema` is {SCHEMA}." in text and "output.schema.json" in text
