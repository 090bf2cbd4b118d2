"""What waits on disk: rows and objects, as they were."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from luthier_py.report.spool import Objects, SpooledRows, facts_of, with_rows


def test_objects_are_a_sequence() -> None:
    with tempfile.TemporaryFile() as file:
        first, second = Objects(file), Objects(file)
        unpicklable = lambda: 7  # noqa: E731
        for number in range(10):
            first.append({"n": (number,), "set": {number}})
            second.append(unpicklable if number == 3 else number)
        assert len(first) == 10 and first[4] == {"n": (4,), "set": {4}} and first[-1]["n"] == (9,)
        assert [value for value in second if value is not unpicklable] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        assert second[3] is unpicklable and second[7:] == [7, 8, 9]
        with pytest.raises(IndexError):
            first[10]


@pytest.mark.parametrize("count", (0, 1, 3))
def test_a_file_of_facts_and_rows(count: int, tmp_path: Path) -> None:
    """It is JSON, and its facts can be read without the rows."""
    path, facts = tmp_path / "f.json", {"text": "one\ntwo, }", "inner": {"n": 1}}
    rows = SpooledRows(path)
    for number in range(count):
        rows.add({"row": number, "text": "a\nb"})
    path.write_bytes(b"".join(with_rows(facts, "rows", rows)))
    assert json.loads(path.read_text()) == {**facts, "rows": [{"row": n, "text": "a\nb"} for n in range(count)]}
    assert facts_of(path) == facts
    rows.close()
    assert list(tmp_path.iterdir()) == [path]
