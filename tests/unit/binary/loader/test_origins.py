"""Where a copy's code is from: addresses there and back, and what is read of a table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from luthier_py.binary.loader.origins import (
    BACK,
    CODE_SECTION,
    HERE,
    ORIGINS_SECTION,
    Origins,
    number_of_own,
    object_name,
    pack_origins,
    read_origins,
)

ROWS = [(0x2000, 0x1000, 8), (0x2010, 0x1008, 4 | BACK), (0x2014, 0x0F00, 12)]
"""Eight bytes that were inserted lie behind the first row; the rows are in no order where they are packed."""


def copy(table: bytes, **sections: Any) -> Any:
    """As much of a code object as is looked at."""
    found = {CODE_SECTION: SimpleNamespace(name=CODE_SECTION, address=0x2000, size=0x40),
             ORIGINS_SECTION: SimpleNamespace(name=ORIGINS_SECTION, offset=5, size=len(table)), **sections}
    there = [each for each in found.values() if each is not None]
    return SimpleNamespace(sections=there, data=b"\1" * 5 + table + b"\2")


def origins() -> Origins:
    found = read_origins(copy(pack_origins(object_name(b"original"), ROWS[::-1])))
    assert found is not None
    return found


def test_addresses_of_the_original() -> None:
    found = origins()
    assert found.original == object_name(b"original") != object_name(b"another")
    assert (found.code, found.backward) == (range(0x2000, 0x2040), {0x2010})
    wanted = {0x1FFC: None, 0x2000: 0x1000, 0x2004: 0x1004, 0x2008: None, 0x200C: None, 0x2010: 0x1008, 0x2014: 0x0F00,
              0x201C: 0x0F08, 0x2020: None, 0x203C: None, 0x2040: None}  # fmt: skip
    assert {pc: found.at(pc) for pc in wanted} == wanted
    inserted = [pc for pc, original in wanted.items() if original is None and 0x2000 <= pc < 0x2040]
    assert [pc for pc in wanted if found.is_inserted(pc)] == inserted
    assert number_of_own(found, wanted) == len(wanted) - len(inserted) and number_of_own(None, wanted) == len(wanted)


def test_what_comes_next_is_the_applications() -> None:
    found = origins()
    assert [found.behind(pc) for pc in (0x1FFC, 0x2000, 0x2008, 0x2010, 0x2014, 0x2020)] == [
        0x1000, 0x1008, 0x1008, 0x0F00, None, None]  # fmt: skip


def test_names_are_of_all_that_is_said_of_code() -> None:
    others = [read_origins(copy(pack_origins(HERE, rows))) for rows in (ROWS, ROWS[1:], [(*ROWS[0][:2], 4), *ROWS[1:]])]
    plain = read_origins(copy(pack_origins(HERE, [(at, pc, size & ~BACK) for at, pc, size in ROWS])))
    assert len({each.name for each in (*others, plain) if each is not None}) == 4
    assert others[0] is not None and others[0].name == origins().name


def test_tables_that_are_none() -> None:
    whole = pack_origins(HERE, ROWS)
    bare = read_origins(copy(HERE))
    assert bare is not None and bare.rows == () and bare.is_inserted(0x2000)
    assert read_origins(copy(HERE[:-1])) is None
    for name in (CODE_SECTION, ORIGINS_SECTION):
        assert read_origins(copy(whole, **{name: None})) is None


def test_damaged_tables_are_none() -> None:
    whole = pack_origins(HERE, ROWS)
    for size in range(len(HERE), len(whole)):
        cut = read_origins(copy(whole[:size]))
        assert (cut is None) is ((size - len(HERE)) % 12 != 0), size
    for row in (
        (0x1FFC, 0x1000, 8),     # before the code
        (0x203C, 0x1000, 8),     # beyond its end
        (0x2004, 0x1000, 4),     # where another row has its bytes
        (0x2038, 0x1000, 1 << 30),
    ):
        assert read_origins(copy(pack_origins(HERE, [*ROWS, row]))) is None, row
    first, *others = (whole[at : at + 12] for at in range(len(HERE), len(whole), 12))
    assert read_origins(copy(HERE + b"".join([*others, first]))) is None  # in another order
