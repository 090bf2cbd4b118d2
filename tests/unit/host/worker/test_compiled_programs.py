"""Programs for tests are compiled once, whoever asks for them at once, and whoever is killed meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import compiled_programs
import pytest
from compiled_programs import Recipe, compiled, key_of

TESTS = Path(compiled_programs.__file__).parent
ASKING = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import compiled_programs
compiled_programs.CACHE = folder = Path(sys.argv[2])

def make(path):
    path.write_text("made")
    with open(folder / "log", "a") as log:
        log.write("made\\n")
    print("making", flush=True)
    while not (folder / "go").exists():
        time.sleep(0.01)

print("asking", flush=True)
print(compiled_programs.compiled(compiled_programs.Recipe("it", "key", make)).read_text(), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compiled_programs, "CACHE", tmp_path)
    return tmp_path


def asking(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ASKING, str(TESTS), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_one_process_compiles_for_both(folder: Path) -> None:
    with asking(folder) as first, asking(folder) as second:
        for process in (first, second):
            assert process.stdout is not None and process.stdout.readline() == "asking\n"
        (folder / "go").touch()
        said = [process.communicate()[0] for process in (first, second)]
    assert (folder / "log").read_text() == "made\n" and sorted(said) == ["made\n", "making\nmade\n"]


def test_who_is_killed_blocks_nobody(folder: Path) -> None:
    with asking(folder) as process:
        assert process.stdout is not None and [process.stdout.readline() for _ in range(2)] == ["asking\n", "making\n"]
        recipe = Recipe("it", "key", lambda path: path.write_text("again"))
        assert not compiled(recipe, wait=False).exists()  # the other one has it
        process.kill()
    assert compiled(recipe).read_text() == "again" and not list(folder.glob("*.part"))


def test_what_fails_leaves_nothing(folder: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError("no such header")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no such header"):
            compiled(Recipe("it", "key", fail))
    assert [path.name for path in folder.glob("it-*")] == ["it-key.lock"]


def test_keys_follow_content(tmp_path: Path) -> None:
    for name in ("a.h", "b.h"):
        (tmp_path / name).write_text("1")
    assert key_of(tmp_path / "a.h", 1) == key_of(tmp_path / "b.h", 1) != key_of(tmp_path / "a.h", 2)
    key = key_of(tmp_path / "a.h")
    (tmp_path / "a.h").write_text("2")
    assert key_of(tmp_path / "a.h") != key
