"""The C libraries have layers: no file uses another one that uses it, by way of however many others.

In: the sources of each library. What a file defines and what it uses is asked of its object, not of its text.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from source_tree import circles

from luthier_py.emulator.watching import watching_library
from luthier_py.host import hip, hiprtc
from luthier_py.host.hip import table
from luthier_py.host.kfd import protocol as kfd_protocol
from luthier_py.host.native import protocol as native_protocol
from luthier_py.host.native.build import HOLD, HOST, MAPPED, NATIVE, TRACED, compile_sources
from luthier_py.host.tool import COMMON_TOOL_SOURCES
from luthier_py.host.worker.native.build import worker_header

LIBRARIES = {
    "hip": (True, [*hiprtc.HIPRTC_SOURCES, HOLD, MAPPED, TRACED]),
    "preload": (False, [hip.HERE / "image.c", *COMMON_TOOL_SOURCES]),
    "hsa": (False, [*COMMON_TOOL_SOURCES]),
    "kfd": (False, [HOLD, MAPPED]),
    "roctx": (False, [TRACED]),
    "worker": (False, []),
}
"""By the room that a library has most sources of: whether HIP is its own, and what else it is made of."""


def write_generated(folder: Path, own_hip: bool) -> list[Path]:
    """Headers, and sources if there are any."""
    rows = table.functions()
    protocols = {"protocol.h": native_protocol, "kfd_protocol.h": kfd_protocol, "hiprtc_protocol.h": hiprtc}
    headers = {name: module.header() for name, module in protocols.items()} | hip.headers(rows, inside=own_hip)
    headers["worker_layout.h"] = worker_header()
    sources = {"checked.c": table.checks(rows), "missing.c": table.stubs(rows)} if own_hip else {}
    for name, text in (headers | sources).items():
        (folder / name).write_text(text)
    return [folder / name for name in sources]


def uses(nm: str, objects: list[Path]) -> dict[str, set[str]]:
    """By the object's name those of the objects that define what it does not."""
    command = [nm, "--extern-only", "--print-file-name", *objects]
    defined: dict[str, str] = {}
    wanted: dict[str, set[str]] = {path.stem: set() for path in objects}
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, symbol = rest.split()
        if kind == "U":
            wanted[Path(path).stem].add(symbol)
        else:
            defined[symbol] = Path(path).stem
    return {name: {defined[symbol] for symbol in symbols & defined.keys()} for name, symbols in wanted.items()}


@pytest.mark.parametrize("room", [
    pytest.param(room, marks=() if room == "hip" else pytest.mark.core) for room in LIBRARIES])
def test_no_file_uses_itself_in_a_circle(room: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    own_hip, others = LIBRARIES[room]
    sources = [*sorted((HOST / room).glob("*.c")), *others, *NATIVE, *write_generated(tmp_path, own_hip)]
    rooms = [f"-I{path}" for path in sorted(HOST.iterdir()) if path.is_dir()]
    objects = compile_sources(tmp_path, sources, "-O0", "-w", f"-D{hip.ABI}={hip.ABI_MAJORS[-1]}", *rooms)
    found = uses(require_tool("nm"), objects)
    assert len(found) == len(sources) and circles(found) == []


def test_no_file_that_watches_launches_uses_itself_in_a_circle(
    tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    require_tool("cc")
    for name, text in watching_library.source_texts().items():
        (tmp_path / name).write_text(text)
    sources = sorted(tmp_path.glob("*.c"))
    found = uses(require_tool("nm"), compile_sources(tmp_path, sources, "-O0", "-w"))
    assert len(found) == len(sources) > 5 and circles(found) == []


def test_circles_of_objects_are_found(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """Also through data; a file that is used and uses nobody is in none."""
    require_tool("cc")
    texts = {
        "above": "extern int *table[]; int *above(void) { return table[0]; }",
        "table": "extern int low; int f(void); int *table[] = {&low}; int (*row)(void) = f;",
        "row": "int *above(void); int f(void) { return *above(); }",
        "low": "int low;",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.c").write_text(text)
    objects = compile_sources(tmp_path, sorted(tmp_path.glob("*.c")))
    room = tmp_path.name
    assert circles(uses(require_tool("nm"), objects)) == [[f"{room}-above", f"{room}-row", f"{room}-table"]]
