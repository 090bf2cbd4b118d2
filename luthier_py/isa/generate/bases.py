"""The operation that a record encodes, without what its encoding adds to the name.

In: records and their pseudos. Out: OpInfo.base. Invariant: one name for one operation, in every encoding, on every
target that calls it by the same mnemonic; no name holds another.
"""

from __future__ import annotations

import re
from functools import cache

from luthier_py.isa.generate.tablegen import Record, TableGen


def base_name(pseudo: str, format_name: str) -> str:
    """The operation's name, same in every encoding: encoding and address mode suffixes removed."""
    name = _without_suffixes(pseudo)
    if name.startswith("V_"):
        name = re.sub(r"(_OP_SEL|_TIED)$|(_[a-z][a-z0-9]*)+(?=_X_)", "", name)
    elif format_name == "SMRD":
        name = re.sub(r"(_SGPR_OPT|_SGPR)?(_IMM)?(?=_RTN$|$)", "", name)
    elif format_name in ("MUBUF", "MTBUF"):
        name = name.replace("_VBUFFER", "")
        name = re.sub(r"(_LDS)?_(OFFEN|IDXEN|BOTHEN|OFFSET|ADDR64)(?=_RTN$|$)", r"\1", name)
    elif format_name == "FLAT":
        name = _without_suffixes(re.sub(r"_(SADDR|SVS|ST)(?=_RTN$|$)", "", name))
    elif format_name in ("MIMG", "VIMAGE", "VSAMPLE"):
        name = re.sub(r"_V\d+(_V\d+)?.*$", "", name)
    elif format_name == "DS":
        name = re.sub(r"_RTN(?=_|$)", "", name)
    return name.removesuffix("_RTN")


def _without_suffixes(name: str) -> str:
    """What encodings add to a name is in small letters: _e32, _t16, _dpp8_gfx11, _w32."""
    return re.sub(r"(_[a-z][a-z0-9]*)+$", "", name)


def base_of_mnemonic(tablegen: TableGen, name: str, record: Record, format_name: str) -> str:
    """Records without a pseudo (DPP8) have names of their own: the operation is what their mnemonic is elsewhere."""
    known = _bases_by_mnemonic(tablegen) if "VALU" in record["flags"] else {}
    found = known.get(_mnemonic(record), frozenset())
    if len(found) > 1:
        raise ValueError(f"{name}: {_mnemonic(record)} is {' and '.join(sorted(found))}")
    return next(iter(found), "") or base_name(name, format_name)


@cache
def _bases_by_mnemonic(tablegen: TableGen) -> dict[str, frozenset[str]]:
    """What each mnemonic of gfx10 and later is, by records that have a pseudo; to older ones some mean other things."""
    bases: dict[str, set[str]] = {}
    for record in tablegen.instructions.values():
        recent = record["DecoderNamespace"].startswith("GFX1")
        if recent and "pseudo" in record and "VALU" in record["flags"]:
            bases.setdefault(_mnemonic(record), set()).add(base_name(record["pseudo"], "VOP3"))
    return {mnemonic: frozenset(found) for mnemonic, found in bases.items()}


def _mnemonic(record: Record) -> str:
    found = re.match(r"\w+", record["AsmString"])
    return found[0] if found else ""
