"""Files that are whole or not there; the cache: where it is, damage, size, and disks that are full."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from luthier_py.storage import Shelf, cache_folder, cache_key, write_file


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


def test_no_folder(own_cache: Path) -> None:
    own_cache.write_text("a file where the folder should be")
    shelf = Shelf("things", 1000)
    shelf.write(cache_key("a"), b"data")
    assert shelf.read(cache_key("a")) is None


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
