"""What counts as done by a tool while it is asked: then it is asked each time; and what others do meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recalling import Author, authoring, cached_edits, made_by

from luthier_py.emulator.code.compile_queue import CompileQueue
from luthier_py.host.worker.instrument import patching
from luthier_py.rewrite.pipeline import Planned, plan


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    with authoring(tmp_path, monkeypatch) as writing:
        yield writing


def test_what_garbage_of_others_does_at_its_end_does_not_count(author: Author) -> None:
    """It is found behind the analyses, which leave Python's search for it much to look at."""
    ended = list[str]()

    class Closing:
        def __init__(self) -> None:
            self.circle = self

        def __del__(self) -> None:
            ended.extend(os.listdir(author.folder))
            print("it ends")

    def planned(*args: Any) -> Planned:
        Closing()
        return plan(*args)

    author.monkeypatch.setattr(patching, "plan", planned)
    assert not cached_edits(made_by(author.tool())) and ended
    assert cached_edits(made_by(author.tool()))


def test_what_the_emulator_compiles_meanwhile_does_not_count(author: Author) -> None:
    """In threads of its own, each with files and a child."""
    made = list[bytes | None]()

    def planned(*args: Any) -> Planned:
        queue = CompileQueue(1)
        made.append(queue.result(queue.begin(lambda: b"code")))
        return plan(*args)

    author.monkeypatch.setattr(patching, "plan", planned)
    assert not cached_edits(made_by(author.tool())) and made == [b"code"]
    assert cached_edits(made_by(author.tool()))


@pytest.mark.parametrize("tool", (
    {"body": "cacheable = False"},
    {"instrument": "print('looking')"},
    {"instrument": "open('sites.txt').read()"},
    {"instrument": "eval(open('data.py').read())"},
    {"instrument": "__import__('os').listdir()"},
    {"instrument": "list(__import__('pathlib').Path('.').glob('*'))"},
    {"instrument": "__import__('sqlite3').connect(':memory:')"},
    {"instrument": "try: import not_there\n        except ImportError: pass"},
    {"instrument": "__import__('os').system('true')"},
    {"instrument": "import os; os.waitpid(os.fork() or os._exit(0), 0)"},
    {"instrument": "import threading; thread = threading.Thread(target=__import__('os').listdir); "
                   "thread.start(); thread.join()"},
    {"instrument": "self.functions = len(m.functions())"},
    {"instrument": "SEEN.append(1)"},
    {"instrument": "type(self).count = getattr(type(self), 'count', 0) + 1"},
    {"notes": "m.facts"},
    {"notes": "lambda: 0"},
), ids=lambda tool: "-".join((*tool.keys(), *tool.values())))  # fmt: skip
def test_what_cannot_be_known_is_asked_each_time(author: Author, tool: dict[str, str]) -> None:
    first, second = made_by(author.tool(**tool)), made_by(author.tool(**tool))
    assert not cached_edits(second) and second.cached and second.made == first.made
