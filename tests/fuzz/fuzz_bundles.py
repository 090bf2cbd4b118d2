"""Damaged fat binaries: bundles, compressed bundles, several of them, inside of other files."""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from pathlib import Path

import zstandard
from fuzzer import Case, Fuzzer
from object_mutations import extend, fill, flip_bits, mutated, some_number, splice, truncate
from seed_objects import seeds

from luthier_py.binary.loader import load, unbundle

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
TRIPLES = ("host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa-gfx90a", "hipv4-amdgcn-amd-amdhsa--{}",
           "hipv4-amdgcn-amd-amdhsa--{}:xnack+", "hipv4-amdgcn-amd-amdhsa--{}:sramecc-:xnack-", "amdgcn", "")
HEADS = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}


def _make(rng: random.Random) -> Case:
    parts = [bundle(rng) for _ in range(rng.choice((1, 1, 1, 2, 5)))]
    data = bytearray(b"".join(_compressed(rng, part) if rng.random() < 0.5 else part for part in parts))
    if rng.random() < 0.2:
        data[:0] = rng.choice((b"\x7fELF", b"CCOB", b"CCO", MAGIC[:7], rng.randbytes(100), seeds()[0].data))
    for _ in range(rng.choice((0, 1, 1, 2))):
        if data:
            rng.choice((flip_bits, truncate, extend, splice, fill))(rng, data)
    return Case(bytes(data))


def bundle(rng: random.Random) -> bytes:
    members = []
    for _ in range(rng.choice((0, 1, 2, 2, 3, 40))):
        seed = rng.choice(seeds())
        content = rng.choice((seed.data, seed.data, mutated(rng), b"", b"\x7fELF"))
        members.append((rng.choice(TRIPLES).format(seed.target.name).encode(), content))
    odd = rng.random() < 0.3
    count = some_number(rng, 8, len(members), [1000]) if odd and rng.random() < 0.2 else len(members)
    at = len(MAGIC) + 8 + sum(24 + len(triple) for triple, _ in members)
    table, contents = MAGIC + struct.pack("<Q", count), b""
    for triple, content in members:
        gap = bytes(-(at + len(contents)) % rng.choice((1, 8, 4096)))
        contents += gap
        row = [at + len(contents), len(content), len(triple)]
        if odd and rng.random() < 0.3:
            which = rng.randrange(3)
            row[which] = some_number(rng, 8, row[which], row)
        table += struct.pack("<3Q", *row) + triple
        contents += content
    return table + contents


def _compressed(rng: random.Random, whole: bytes) -> bytes:
    version = rng.choice((1, 2, 3, 3))
    method = rng.randrange(2)
    if rng.random() < 0.05:
        whole += bytes(rng.choice((1 << 20, 20 << 20)))
    packed = zstandard.ZstdCompressor(1).compress(whole) if method else zlib.compress(whole, 1)
    digest = int.from_bytes(hashlib.md5(whole).digest()[:8], "little")
    size = struct.calcsize(HEADS[version]) + len(packed)
    values = [version, method, *([size] if version > 1 else []), len(whole), digest]
    widths = {"H": 2, "I": 4, "Q": 8}
    if rng.random() < 0.3:
        which = rng.randrange(len(values))
        width = widths[HEADS[version][3:][which]]
        values[which] = some_number(rng, width, values[which], values)
    return struct.pack(HEADS[version], b"CCOB", *values) + packed


def _trial(case: Case, folder: Path) -> None:
    for member in unbundle(case.data):
        assert member.data.startswith(b"\x7fELF"), "no ELF"
        load(member.data)


FUZZER = Fuzzer("bundles", _make, _trial)
