"""The program's side of a tool, as far as it is the same for HIP and HSA: C sources of both libraries."""

from __future__ import annotations

from pathlib import Path

COMMON_TOOL = Path(__file__).parent
COMMON_TOOL_SOURCES = tuple(sorted(COMMON_TOOL.glob("*.c")))


def make_tool_defines(tool: str | None, options: str) -> list[str]:
    """Options of the compiler for a library that has this tool in it."""
    return (
        [f"-DLUTHIER_TOOL={_quote_c_string(tool)}", f"-DLUTHIER_TOOL_OPTIONS={_quote_c_string(options)}"]
        if tool
        else []
    )


def _quote_c_string(text: str) -> str:
    """A C string literal; anything unusual as an octal escape."""
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-/=:")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'
