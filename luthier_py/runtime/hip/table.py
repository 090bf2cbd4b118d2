"""functions.txt and errors.txt to C: declarations, stubs, the linker's version script.

In: the two tables beside this file. Out: texts of generated files. Invariant: every name of the table is exported
under its symbol version, whether it is implemented or not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Function:
    """One exported name."""

    name: str
    version: str
    signature: str | None = None  # C declaration, when it is implemented here
    alias_of: str | None = None


def functions() -> tuple[Function, ...]:
    rows: list[Function] = []
    version = ""
    for line in (HERE / "functions.txt").read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if re.fullmatch(r"hip_\d+\.\d+", text):
            version = text
        elif text.startswith("- "):
            rows += [Function(name, version) for name in text[2:].split()]
        elif " = " in text:
            name, _, other = text.partition(" = ")
            rows.append(Function(name, version, alias_of=other))
        else:
            head, _, parameters = text.partition("(")
            result, name = re.fullmatch(r"(.*?)(\w+)", head).groups()  # type: ignore[union-attr]
            rows.append(Function(name, version, f"{result or 'hipError_t '}{name}({parameters}"))
    return tuple(rows)


def declarations(rows: tuple[Function, ...]) -> str:
    """functions.h."""
    return "".join(f"API {row.signature};\n" for row in rows if row.signature)


def stubs(rows: tuple[Function, ...]) -> str:
    """missing.c: what is exported but not implemented. Arguments are ignored, whatever they are."""
    body = [
        f"API hipError_t {row.name}(void);\nhipError_t {row.name}(void)\n{{\n"
        "    static atomic_flag said = ATOMIC_FLAG_INIT;\n"
        f'    return not_supported("{row.name}", &said);\n}}\n'
        for row in rows
        if not row.signature and not row.alias_of
    ]
    return "\n".join(['#include "luthier.h"\n', *body])


def aliases(rows: tuple[Function, ...]) -> list[str]:
    """Linker options."""
    return [f"-Wl,--defsym={row.name}={row.alias_of}" for row in rows if row.alias_of]


def version_script(rows: tuple[Function, ...]) -> str:
    """hip.map: each version inherits from the one before."""
    versions = list(dict.fromkeys(row.version for row in rows))
    nodes = []
    for before, version in zip(["", *versions], versions, strict=False):
        names = "".join(f"    {row.name};\n" for row in rows if row.version == version)
        nodes.append(f"{version} {{\nglobal:\n{names}{'local: *;' if not before else ''}\n}} {before};\n")
    return "".join(nodes)


def errors_header() -> str:
    """errors.h: the enum, and a macro that names every error."""
    rows = [line.split(" ", 2) for line in (HERE / "errors.txt").read_text().splitlines() if line and line[0] != "#"]
    enum = "\n".join(f"    {name} = {value}," for value, name, _ in rows)
    every = " \\\n".join(f'    ERROR({value}, {name}, "{text}")' for value, name, text in rows)
    return f"typedef enum hipError_t {{\n{enum}\n}} hipError_t;\n#define ALL_ERRORS(ERROR) \\\n{every}\n"
