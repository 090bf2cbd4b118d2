"""Mutations of code objects that know their structure: fields, names, metadata, instructions; and blind ones.

In: a seed. Out: bytes that differ from it in a few places, most of them still close to a code object.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import msgpack
from seed_objects import Field, Seed, seeds

from luthier_py.base.errors import Malformed

NAMES = (b"a[/b]", b"[red]x", b"..", b"../../x", b"\x1b[31m", b"\n", b"%s%n", b"\xff\xfe", b"=1+1", b"k\0k", b"'\"<&>",
         b"x" * 300)
TRIES = 30
INSTRUCTION_BYTES = 28


def damaged_kernel(rng: random.Random, targets: tuple[str, ...]) -> bytes:
    """A seed of one of these targets with a few mutations of code and descriptors, so that it still loads."""
    seed = rng.choice([seed for seed in seeds() if seed.target.name in targets])
    data = bytearray(seed.data)
    for _ in range(rng.choice((1, 2, 3))):
        kind = rng.random()
        if kind < 0.5:
            _code(rng, data, seed)
        elif kind < 0.6:
            _metadata(rng, data, seed)
        else:
            _set_one(rng, data, rng.choice(seed.descriptors))
    return bytes(data)


def mutated(rng: random.Random) -> bytes:
    """A seed with one to four mutations."""
    seed = rng.choice(seeds())
    data = bytearray(seed.data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        rng.choices(*zip(*_MUTATIONS, strict=True))[0](rng, data, seed)
    return bytes(data)


def like(data: bytes) -> bytes:
    """The seed that a mutant resembles most: the one with most of its bytes in their places."""
    return max((seed.data for seed in seeds()), key=lambda seed: sum(map(int.__eq__, seed, data)))


def some_number(rng: random.Random, size: int, old: int, others: list[int]) -> int:
    """A value for a field of ``size`` bytes: edges, neighbours of the old one, another field's, or any."""
    bits = 8 * size
    edges = (0, 1, 2, 3, 4, 7, 8, 64, 255, 0xFFF1, (1 << bits) - 1, (1 << bits - 1), (1 << bits - 1) - 1,
             (1 << bits) - 8)
    value = rng.choice((
        rng.choice(edges), rng.choice(edges), old + rng.choice((-8, -4, -1, 1, 4, 8)), old ^ 1 << rng.randrange(bits),
        rng.choice(others), rng.choice(others) + rng.choice((-1, 1)), rng.getrandbits(rng.randrange(1, bits + 1)),
        1 << rng.randrange(bits),
    ))
    return value % (1 << bits)


def _set_field(rng: random.Random, data: bytearray, seed: Seed) -> None:
    _set_one(rng, data, rng.choice(seed.groups))


def _set_one(rng: random.Random, data: bytearray, group: tuple[Field, ...]) -> None:
    at, size = rng.choice(group)
    if at + size > len(data):
        return
    others = [int.from_bytes(data[a : a + s], "little") for a, s in rng.sample(group, min(len(group), 8))]
    old = int.from_bytes(data[at : at + size], "little")
    data[at : at + size] = some_number(rng, size, old, [*others, len(data)]).to_bytes(size, "little")


def _name(rng: random.Random, data: bytearray, seed: Seed) -> None:
    at = rng.choice(seed.names)
    new = rng.choice(NAMES)
    new = new[: max(min(len(new), seed.names.stop - at), 0)]
    if at + len(new) <= len(data):
        data[at : at + len(new)] = new


def flip_bits(rng: random.Random, data: bytearray, seed: Seed | None = None) -> None:
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def truncate(rng: random.Random, data: bytearray, seed: Seed | None = None) -> None:
    del data[rng.randrange(len(data) + 1) :]


def extend(rng: random.Random, data: bytearray, seed: Seed | None = None) -> None:
    data += rng.choice((bytes(rng.randrange(1, 5000)), rng.randbytes(rng.randrange(1, 500))))


def splice(rng: random.Random, data: bytearray, seed: Seed | None = None) -> None:
    """A piece of this or another object over, or into, this one."""
    other = rng.choice((bytes(data), rng.choice(seeds()).data))
    size = rng.choice((4, 8, 16, 64, 64, 256, 4096))
    start, at = (rng.randrange(max(len(each) - size, 1)) // 4 * 4 for each in (other, data))
    piece = other[start : start + size]
    data[at : at + (size if rng.random() < 0.9 else 0)] = piece


def fill(rng: random.Random, data: bytearray, seed: Seed | None = None) -> None:
    at, size = rng.randrange(len(data) + 1), rng.choice((1, 4, 16, 64, 512))
    data[at : at + size] = rng.choice((b"\0", b"\xff", b"A")) * len(data[at : at + size])


def random_instruction(rng: random.Random, seed: Seed) -> bytes:
    """Random bits, if possible such as make an instruction."""
    for _ in range(TRIES):
        word = rng.randbytes(INSTRUCTION_BYTES)
        try:
            return seed.isa.decode(word).raw
        except Malformed:
            continue
    return word[:4]


def _code(rng: random.Random, data: bytearray, seed: Seed) -> None:
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.choice(seed.code)
        kind = rng.randrange(4)
        if kind == 0:
            new = rng.randbytes(4)
        elif kind == 1:
            source = rng.choice(seed.code)
            new = bytes(data[source : source + rng.choice((4, 8, 16))])
        else:
            new = random_instruction(rng, seed)
        if at + len(new) <= len(data):
            data[at : at + len(new)] = new


_ODD: tuple[Any, ...] = (None, True, -1, 0, 1, 7, 1 << 31, (1 << 63) - 1, (1 << 64) - 1, 0.5, float("nan"), "",
                         "x" * 300,
                         "a[/b]", "../..", "\n", b"\xff", [], {}, [1], {1: 2}, [{}], "amdgcn-amd-amdhsa--gfx1100")


def _metadata(rng: random.Random, data: bytearray, seed: Seed) -> None:
    """Edit the document, encode it again, and put it at the end of the file with its program header changed."""
    header, at, _ = seed.notes
    try:
        owner, content, kind = struct.unpack_from("<3I", data, at)
        start = at + 12 + -(-owner // 4) * 4
        document = msgpack.unpackb(data[start : start + content], strict_map_key=False)
    except (struct.error, ValueError, TypeError, msgpack.UnpackException):
        return
    document = _edited(rng, document)
    packed = msgpack.packb(document)
    if rng.random() < 0.1:
        packed = packed[: rng.randrange(len(packed))]
    note = struct.pack("<3I", 7, len(packed), 32) + b"AMDGPU\0\0" + packed + bytes(-len(packed) % 4)
    data += bytes(-len(data) % 4)
    place = len(data)
    data += note
    for field, value in ((8, place), (32, len(note)), (40, len(note))):  # p_offset, p_filesz, p_memsz
        struct.pack_into("<Q", data, header + field, value)


def _edited(rng: random.Random, node: Any) -> Any:
    """``node`` with one thing in it changed."""
    if isinstance(node, dict) and node and rng.random() < 0.9:
        key = rng.choice(list(node))
        kind = rng.randrange(10)
        if kind == 0:
            return {k: v for k, v in node.items() if k != key}
        if kind == 1:
            return {**node, rng.choice(("", ".name", 1, ".args", "amdhsa.kernels")): rng.choice(_ODD)}
        return {**node, key: _edited(rng, node[key])}
    if isinstance(node, list) and node and rng.random() < 0.9:
        at = rng.randrange(len(node))
        kind = rng.randrange(10)
        if kind == 0:
            return node[:at] + node[at + 1 :]
        if kind == 1:
            return node + [node[at]] * rng.choice((1, 1, 50))
        return [*node[:at], _edited(rng, node[at]), *node[at + 1 :]]
    if isinstance(node, int) and rng.random() < 0.5:
        return some_number(rng, 8, node % (1 << 64), [node % (1 << 64)])
    return rng.choice(_ODD)


_MUTATIONS = ((_set_field, 40), (_metadata, 15), (_code, 15), (_name, 5), (flip_bits, 8), (truncate, 4), (extend, 2),
              (splice, 8), (fill, 3))
