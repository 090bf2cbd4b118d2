"""That a copy's dynamic symbols are found by their names (System V ABI, "Hash Table"; GNU's DT_GNU_HASH).

In: an ELF. Out: nothing, or CheckFailed.
"""

from __future__ import annotations

import struct

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.binary.loader import SectionType
from luthier_py.binary.loader.elf import SYMBOL, Elf


def make_failure(what: str, where: str | None = None) -> CheckFailed:
    """The error, to be raised, for a copy whose file has more than additions; ``where``: the symbol or kernel."""
    return CheckFailed(f"the copy is not the original with additions: {what}", Location(where))


def check_hashes(elf: Elf, known: int) -> None:
    """Each dynamic symbol is found by its name, but for those of the first ``known`` that never were."""
    index, table, gnu = (elf.find(kind) for kind in (SectionType.DYNSYM, SectionType.HASH, SectionType.GNU_HASH))
    if index is None:
        return
    rows = elf.content(elf.sections[index])
    if elf.sections[index].link >= len(elf.sections):
        raise make_failure("its dynamic symbols have no names")
    strings = elf.content(elf.sections[elf.sections[index].link])
    names = [strings[row[0]:max(strings.find(b"\0", row[0]), 0)] for row in SYMBOL.iter_unpack(rows)]
    defined = [k for k, row in enumerate(SYMBOL.iter_unpack(rows)) if k and row[3]]
    try:
        if table is not None:
            _check_hash(elf.content(elf.sections[table]), names, defined)
        if gnu is not None:
            _check_gnu_hash(elf.content(elf.sections[gnu]), names, defined, known)
    except (IndexError, ZeroDivisionError, struct.error):
        raise make_failure("a hash table of it is broken") from None


def _check_hash(content: bytes, names: list[bytes], defined: list[int]) -> None:
    words = struct.unpack(f"<{len(content) // 4}I", content[:len(content) // 4 * 4])
    buckets = words[2:2 + words[0]]
    chains = words[2 + words[0]:]
    for k in defined:
        at, steps = buckets[_sysv(names[k]) % len(buckets)], 0
        while at and at != k and steps < len(chains):
            at, steps = chains[at] if at < len(chains) else 0, steps + 1
        if at != k and names[at] != names[k]:
            raise make_failure(f"symbol {names[k].decode(errors='replace')} is not found by its hash")


def _sysv(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def _check_gnu_hash(content: bytes, names: list[bytes], defined: list[int], known: int) -> None:
    count, first, bloom, shift = struct.unpack_from("<4I", content)
    masks = struct.unpack_from(f"<{bloom}Q", content, 16)
    start = 16 + 8 * bloom
    words = struct.unpack(f"<{(len(content) - start) // 4}I", content[start:start + (len(content) - start) // 4 * 4])
    buckets, chains = words[:count], words[count:]
    for k in defined:
        if k < min(first, known):
            continue
        value = 5381
        for byte in names[k]:
            value = (value * 33 + byte) & 0xFFFFFFFF
        at = buckets[value % count]
        mask = masks[value // 64 % bloom]
        known = mask >> value % 64 & 1 and mask >> (value >> shift) % 64 & 1
        while known and at and at < k and not chains[at - first] & 1:
            at += 1
        if not known or at != k or chains[at - first] | 1 != value | 1:
            raise make_failure(f"symbol {names[k].decode(errors='replace')} is not found by its hash")
