"""Files that are whole or not there; the cache: where it is, damage, size, and disks that are full."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base import storage
from luthier_py.base.storage import (
    Shelf,
    cache_folder,
    cache_key,
    digest,
    do_without,
    own_folder,
    settle_cache,
    sources,
    tell_making,
    write_file,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUTHIER_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/luthier")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_folder() == Path("/home/somebody/.cache/luthier")


def test_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", "off")
    shelf = Shelf("things", 1000)
    shelf.write(cache_key("a"), b"data")
    assert cache_folder() is None and shelf.read(cache_key("a")) is None


def test_kept(own_cache: Path) -> None:
    shelf, key = Shelf("things", 1000), cache_key("a", b"b")
    assert shelf.read(key) is None
    shelf.write(key, b"data")
    assert shelf.read(key) == b"data" and Shelf("others", 1000).read(key) is None
    (path,) = [path for path in own_cache.rglob("*") if path.is_file()]
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert shelf.read(key) is None
    shelf.write(key, b"data")
    assert shelf.read(key) == b"data"


def test_keys_keep_their_parts_apart() -> None:
    assert cache_key("a", "bc") != cache_key("ab", "c")


def test_what_was_not_used_for_longest_goes(own_cache: Path) -> None:
    shelf = Shelf("things", 1000)
    keys = [f"0{number}" + "0" * 62 for number in range(6)]
    for age, key in enumerate(keys):
        shelf.write(key, bytes(200))
        os.utime(own_cache / "things" / key[:2] / key[2:], (age, age))
    assert [shelf.read(key) is not None for key in keys] == [False, False, True, True, True, True]


def test_what_was_read_was_used(own_cache: Path) -> None:
    shelf = Shelf("things", 1000)
    keys = [f"{number}" + "0" * 63 for number in range(1, 5)]
    for age, key in enumerate(keys):
        shelf.write(key, bytes(200))
        os.utime(own_cache / "things" / key[:2] / key[2:], (age, age))
    assert shelf.read(keys[0]) is not None  # no longer the one that was not used for longest
    shelf.write("0" * 64, bytes(200))
    assert [shelf.read(key) is not None for key in keys] == [True, False, True, True]


@pytest.mark.parametrize("each", [100, 1])
def test_the_size_is_looked_after_once_for_a_sixteenth_of_it(
    each: int, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many writes a process makes: of processes with one, each tenth looks."""
    looks = list[object]()
    monkeypatch.setattr(storage, "_trim", lambda *given: looks.append(given))
    shelf = Shelf("things", 16_000)
    for number in range(200):
        if number % each == 0:
            storage._written.clear()
        shelf.write(cache_key(f"{number}"), bytes(100))
    assert 15 <= len(looks) <= 25


@pytest.mark.parametrize("mask", [0o177, 0o777])
def test_a_new_folder_is_its_owners_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "new"
    before = os.umask(mask)
    try:
        own_folder(folder)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_no_folder(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_cache.write_text("a file where the folder should be")
    shelf = Shelf("things", 1000)
    shelf.write(cache_key("a"), b"data")
    assert shelf.read(cache_key("a")) is None
    said = capsys.readouterr().err
    assert said.startswith(f"luthier: working without the cache {own_cache} (it is no folder); LUTHIER_CACHE_DIR ")
    assert said.count("\n") == 1, "once"


def test_another_folder_serves_where_none_can_be_made(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And who is started finds it; a cache that is there, or off, stays."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    settle_cache()
    assert cache_folder() == own_cache and own_cache.is_dir() and capsys.readouterr().err == ""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "file" / "cache"))
    (tmp_path / "file").touch()
    settle_cache()
    other = tmp_path / f"luthier-{os.geteuid()}"
    assert cache_folder() == other and stat.S_IMODE(other.stat().st_mode) == 0o700
    assert capsys.readouterr().err.startswith(f"luthier: {other} serves as cache instead of {tmp_path}/file/cache (")
    shelf = Shelf("things", 1000)
    shelf.write(cache_key("a"), b"data")
    assert shelf.read(cache_key("a")) == b"data"
    monkeypatch.setenv("LUTHIER_CACHE_DIR", "off")
    settle_cache()
    assert cache_folder() is None and capsys.readouterr().err == ""


def test_a_folder_that_others_could_have_made_does_not_serve(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    own_cache.touch()
    other = tmp_path / f"luthier-{os.geteuid()}"
    other.mkdir()
    other.chmod(0o777)
    settle_cache()
    assert cache_folder() == own_cache and "working without the cache" in capsys.readouterr().err


def test_what_takes_a_while_is_said_once(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LUTHIER_MAKING_TOLD")
    for _ in range(2):
        tell_making("compiling")
    assert capsys.readouterr().err == f"luthier: compiling, which takes a while; kept in {own_cache}\n"


def test_files_that_are_not_copied_have_one_reason(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [(f"a{n}", f"b{n}", f"[Errno 28] No space left on device: 'b{n}'") for n in range(9)]
    do_without(shutil.Error(names))
    assert capsys.readouterr().err.startswith(
        f"luthier: working without the cache {own_cache} ([Errno 28] No space left on device); ")


def test_another_name_is_another_thing(own_cache: Path) -> None:
    """Whoever moves an entry does not make it one of another key, or of another shelf."""
    shelf, others = Shelf("things", 1000), Shelf("others", 1000)
    shelf.write(cache_key("a"), b"data")
    for wrong, key in ((shelf, cache_key("b")), (others, cache_key("a"))):
        wrong.write(key, b"other")
        place(own_cache, wrong, key).write_bytes(place(own_cache, shelf, cache_key("a")).read_bytes())
        assert wrong.read(key) is None
    assert shelf.read(cache_key("a")) == b"data"


def place(cache: Path, shelf: Shelf, key: str) -> Path:
    return cache / shelf.name / key[:2] / key[2:]


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_nobody_else_can_enter(own_cache: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        Shelf("things", 1000).write(cache_key("a"), b"data")
    finally:
        os.umask(before)
    found = {path: path.stat().st_mode & 0o777 for path in (own_cache, *own_cache.rglob("*"))}
    assert len(found) == 4 and all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in found.items())


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("change", ["group may write", "all may write", "another owner"])
def test_what_others_could_have_made_is_not_read(
    own_cache: Path, depth: int, change: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf, key = Shelf("things", 1000), cache_key("a")
    shelf.write(key, b"data")
    entry = place(own_cache, shelf, key)
    victim = [entry, *entry.parents][depth]
    if change == "another owner":
        strangers(victim, monkeypatch)
    else:
        victim.chmod(victim.stat().st_mode | (0o020 if change == "group may write" else 0o002))
    assert shelf.read(key) is None
    said = capsys.readouterr().err
    assert ("it belongs to user 12345" if change == "another owner" else "others may write to it") in said
    assert said.count("\n") == 1


def strangers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ``path`` belonged to somebody else, for those who may not give it away."""
    real, own = os.stat, os.stat(path)

    def stat(target: Any, **options: Any) -> os.stat_result:
        return foreign(real(target, **options))

    def foreign(found: os.stat_result) -> os.stat_result:
        same = (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
        return os.stat_result((*found[:4], 12345, *found[5:])) if same else found

    monkeypatch.setattr("pathlib.Path.stat", lambda self, **options: stat(self, **options))
    fstat = os.fstat
    monkeypatch.setattr(os, "fstat", lambda number: foreign(fstat(number)))


def test_a_cache_that_may_only_be_read(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, key = Shelf("things", 1000), cache_key("a")
    shelf.write(key, b"data")

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "read-only")

    monkeypatch.setattr(os, "utime", refuse)
    assert shelf.read(key) == b"data"


def test_full_disk(own_cache: Path) -> None:
    shelf, limits = Shelf("things", 1000), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
    try:
        shelf.write(cache_key("a"), b"more than fits")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert shelf.read(cache_key("a")) is None and not [path for path in own_cache.rglob("*") if path.is_file()]


def test_a_file_is_replaced_or_left(tmp_path: Path) -> None:
    path = tmp_path / "result"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError):
        write_file(tmp_path / "none" / "result", b"three")
    with pytest.raises(OSError):
        write_file(Path("/dev/full"), b"four")
    assert Path("/dev/full").is_char_device()


def test_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"old")
    (tmp_path / "below" / "again").symlink_to("file")
    (tmp_path / "link").symlink_to("below/again")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "below" / "again").is_symlink()
    assert (tmp_path / "below" / "file").read_bytes() == b"new" and len(list(tmp_path.rglob("*"))) == 4
    (tmp_path / "dangling").symlink_to("below/other")
    write_file(tmp_path / "dangling", b"made")
    assert (tmp_path / "below" / "other").read_bytes() == b"made"
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        write_file(tmp_path / "circle", b"")


def test_an_open_file_is_written_to(tmp_path: Path) -> None:
    """/dev/stdout is such a link; whoever may write to /dev must not replace it."""
    with (tmp_path / "file").open("w+b") as file:
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_file(link, b"written")
        assert link.is_symlink() and file.read() == b"written" and len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_is_said_with_the_name(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match=f"No space left on device: '{link}'"):
        write_file(link, bytes(1 << 20))


def test_sources_are_named_by_what_is_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So another checkout with the same files, or a change of other rooms, finds what was kept."""

    def named(folder: str, *rooms: str) -> str:
        monkeypatch.setattr(storage, "__file__", str(tmp_path / folder / "base" / "storage.py"))
        sources.cache_clear()
        return sources(*rooms)

    def write(path: str, text: str) -> None:
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    try:
        for folder in ("here", "there"):
            for name in ("isa/deep/a.py", "isa/table.json", "report/b.py", "llvm.py"):
                write(f"{folder}/{name}", f"# {name}")
        rooms = named("here", "isa", "llvm")
        assert rooms == named("there", "isa", "llvm") != named("here")
        write("here/report/b.py", "# another")
        assert named("here", "isa", "llvm") == rooms and named("here") != named("there")
        for name in ("isa/deep/a.py", "isa/table.json", "llvm.py", "isa/new.py"):
            write(f"there/{name}", "# changed")
            assert named("there", "isa", "llvm") not in (rooms, named("here", "isa", "llvm"))
            rooms = named("there", "isa", "llvm")
        (tmp_path / "there/isa/new.py").rename(tmp_path / "there/isa/newer.py")
        assert named("there", "isa", "llvm") != rooms
    finally:
        sources.cache_clear()


def test_a_digest_is_of_places_and_contents_and_of_when_python_was_written(tmp_path: Path) -> None:
    """Python's own compiled file is taken while its source has the same time, whatever is in it."""
    for name in ("a.py", "b.txt"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1000, 1000))
    found = [digest(str(tmp_path))]
    os.utime(tmp_path / "b.txt", (2000, 2000))
    assert digest(str(tmp_path)) == found[0]
    os.utime(tmp_path / "a.py", (2000, 2000))
    found.append(digest(str(tmp_path)))
    (tmp_path / "b.txt").write_text("c.txt")
    found.append(digest(str(tmp_path)))
    found += [digest(str(tmp_path / name)) for name in ("a.py", "b.txt", "none", "none.py")]
    assert len(set(found)) == len(found)
