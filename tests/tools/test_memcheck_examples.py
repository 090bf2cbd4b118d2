"""Of many lanes that did the same wrong memcheck's text has a line."""

from __future__ import annotations

from typing import Any

from luthier_py.tools.memcheck.examples import example_lines


def row(lane: int, address: int, what: str, wave: int = 0, space: str = "memory") -> dict[str, Any]:
    return {"lane": lane, "address": address, "what": what, "wave": wave, "workgroup": 3, "space": space}


def past(lane: int, bytes: int, **more: Any) -> dict[str, Any]:
    return row(lane, 0x2000 + bytes, f"{bytes} bytes past the end of x (4096 bytes)", **more)


def test_lanes_beside_each_other() -> None:
    assert example_lines([past(lane, 4 * lane) for lane in range(16)]) == [
        "0x2000 to 0x203c by 4: 0 to 60 bytes past the end of x (4096 bytes); lanes 0 to 15 of wave 0 of work-group 3"]
    assert example_lines([past(lane, 64 - 8 * lane, space="LDS") for lane in range(2)]) == [
        "0x2040 to 0x2038 by -8 in LDS: 64 to 56 bytes past the end of x (4096 bytes); lanes 0 to 1 of wave 0 of "
        "work-group 3"]
    assert example_lines([row(lane, 0x10, "no multiple of 4") for lane in range(5, 8)]) == [
        "0x10: no multiple of 4; lanes 5 to 7 of wave 0 of work-group 3"]


def test_what_does_not_go_on_is_apart() -> None:
    """Another wave, a lane left out, another distance, and what is said of another allocation."""
    rows = [past(0, 0), past(1, 4), past(3, 8), past(4, 12, wave=1), past(5, 40, wave=1), past(6, 44, wave=1),
            row(7, 0x2030, "48 bytes before y (8 bytes)", wave=1)]
    assert [line.partition(": ")[0] for line in example_lines(rows)] == [
        "0x2000 to 0x2004 by 4", "0x2008", "0x200c to 0x2028 by 28", "0x202c", "0x2030"]
    assert example_lines([]) == []
    jumps = [row(lane, 0x2000 + 512 * lane, f"{bytes} bytes past the end of x (8 bytes)")
             for lane, bytes in enumerate((0, 100, 8))]
    assert [line.partition(";")[0] for line in example_lines(jumps)] == [
        "0x2000 to 0x2200 by 512: 0 to 100 bytes past the end of x (8 bytes)",
        "0x2400: 8 bytes past the end of x (8 bytes)"]
