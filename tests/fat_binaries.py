"""Fat binaries, as clang-offload-bundler writes them (Clang documentation, "ClangOffloadBundler")."""

from __future__ import annotations

import struct


def bundle(*members: tuple[str, bytes]) -> bytes:
    """Of triples with their code objects."""
    head = 24 + 8 + sum(24 + len(triple) for triple, _ in members)
    table, contents, at = b"", b"", -(-head // 4096) * 4096
    for triple, data in members:
        table += struct.pack("<3Q", at, len(data), len(triple)) + triple.encode()
        contents += data
        at += len(data)
    start = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(members)) + table
    return start + bytes(-len(start) % 4096) + contents
