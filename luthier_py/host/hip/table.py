"""functions.txt, errors.txt and api_names.txt to C: declarations, checks of arguments, stubs, the version script.

In: the tables beside this file. Out: texts of generated files. Invariant: every name of the table is exported
under its symbol version, whether it is implemented or not; what is implemented sees only arguments that passed the
checks of its line. In the library's own sources a function's name means its implementation, whose symbol is hidden
(``implementation``): the name that programs link is a function that checks, calls it and remembers its error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from luthier_py.base.records import dataclass, replace

HERE = Path(__file__).parent
ERROR_TYPE = "hipError_t"
INVALID_VALUE, INVALID_DEVICE = 1, 101
_KINDS = "stream event graph exec node module kernel pool library array backing"
HANDLES = {f"{kind}_t": kind for kind in _KINDS.split()}
FUNCTION_POINTERS = {"stream_callback"}
_PARAMETER = re.compile(r"(?P<declaration>[^?:!]+?)(?P<optional>\?)?(?::(?P<test>[^!]+))?(?:!(?P<error>\d+))?$")


class Word(Enum):
    """What stands behind a signature."""

    UNSAFE = "unsafe"
    LEGACY = "legacy"
    RECORDED = "recorded"
    IMAGES = "images"
    COLD = "cold"
    BARE = "bare"


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """``declaration``: as in C. ``test``: a set of numbers, or ``device``; "" for none. ``error``: of a handle, 0 is
    what its kind's check says.
    """

    declaration: str
    optional: bool = False
    test: str = ""
    error: int = INVALID_VALUE

    @property
    def name(self) -> str:
        """The last word of the declaration, or that in ``(*name)`` of a pointer to a function."""
        found = re.search(r"\(\*(\w+)\)", self.declaration) or re.search(r"(\w+)$", self.declaration)
        assert found, self.declaration
        return found[1]

    @property
    def type(self) -> str:
        """The declaration before the name; the whole of it where the name stands inside, as in a pointer to a
        function."""
        return self.declaration.removesuffix(self.name).strip()

    @property
    def handle(self) -> str | None:
        """Its kind, if it is one."""
        return HANDLES.get(self.type)

    @property
    def pointer(self) -> bool:
        """Whether it is a pointer, also to a function: null is refused unless it is ``optional``."""
        return "*" in self.declaration or self.type in FUNCTION_POINTERS


@dataclass(frozen=True, slots=True)
class ApiFunction:
    """One exported name."""

    name: str
    version: str
    result: str = ERROR_TYPE
    parameters: tuple[ApiParameter, ...] | None = None  # when it is implemented here
    words: frozenset[Word] = frozenset()
    alias_of: str | None = None
    thread_form_of: str | None = None

    @property
    def implemented(self) -> bool:
        """Whether its line has a signature; other names are aliases, or report hipErrorNotSupported."""
        return self.parameters is not None

    @property
    def checked(self) -> bool:
        """Whether programs come to it through its checks."""
        return self.implemented and self.result == ERROR_TYPE and Word.BARE not in self.words

    def declare(self, name: str) -> str:
        """Its C declaration under ``name``, without a semicolon."""
        declarations = ", ".join(p.declaration for p in self.parameters or ()) or "void"
        return f"{self.result}{'' if self.result.endswith('*') else ' '}{name}({declarations})"


def functions() -> tuple[ApiFunction, ...]:
    """The rows of functions.txt in their order, each with the symbol version above it; the file's head says how they
    are written."""
    rows: list[ApiFunction] = []
    version = ""
    for line in (HERE / "functions.txt").read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if re.fullmatch(r"hip_\d+\.\d+", text):
            version = text
        elif text.startswith("- "):
            rows += [ApiFunction(name, version) for name in text[2:].split()]
        elif " = " in text:
            name, _, other = text.partition(" = ")
            rows.append(ApiFunction(name, version, alias_of=other))
        elif " ~ " in text:
            name, _, other = text.partition(" ~ ")
            rows.append(ApiFunction(name, version, thread_form_of=other))
        else:
            rows.append(_read(text, version))
    return tuple(rows)


def _read(line: str, version: str) -> ApiFunction:
    head, _, rest = line.partition("(")
    inside, _, words = rest.rpartition(")")
    found = re.fullmatch(r"(.*?)(\w+)", head)
    assert found, line
    result, name = found.groups()
    parameters = tuple(_parameter(text) for text in _split(inside) if text != "void")
    return ApiFunction(
        name, version, result.strip() or ERROR_TYPE, parameters, frozenset(Word(word) for word in words.split())
    )


def _split(text: str) -> list[str]:
    """At commas outside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text)]


def _parameter(text: str) -> ApiParameter:
    found = _PARAMETER.match(text)
    assert found, text
    test = found["test"] or ""
    parameter = ApiParameter(found["declaration"], bool(found["optional"]), test)
    default = INVALID_DEVICE if test == "device" else 0 if parameter.handle else INVALID_VALUE
    return replace(parameter, error=int(found["error"] or default))


def implementation(name: str) -> str:
    """The symbol of what is behind the checks."""
    return f"unchecked_{name}"


def declarations(rows: tuple[ApiFunction, ...], inside: bool = False) -> str:
    """functions.h: for the library itself (``inside``), or for its callers."""
    lines = []
    for row in rows:
        if row.implemented and not (inside and row.checked):
            lines.append(f"API {row.declare(row.name)};\n")
        elif row.implemented:
            lines.append(f'{row.declare(row.name)} __asm__("{implementation(row.name)}");\n')
    return "".join(lines)


def checks(rows: tuple[ApiFunction, ...]) -> str:
    """checked.c: what programs call."""
    named = {row.name: row for row in rows}
    parts = ['#define LUTHIER_OUTSIDE\n#include "checks.h"\n#include "device.h"\n#include "streams.h"\n']
    parts += [_emit_checked_function(row) for row in rows if row.checked]
    parts += [_for_thread(row, named[row.thread_form_of]) for row in rows if row.thread_form_of]
    return "\n".join(parts)


def _emit_checked_function(row: ApiFunction) -> str:
    arguments = ", ".join(p.name for p in row.parameters or ())
    lines = [f"{row.declare(implementation(row.name))};", f"API {row.declare(row.name)};", row.declare(row.name), "{"]
    result = f"{implementation(row.name)}({arguments})"
    if Word.IMAGES in row.words:
        result = "check_images()"
        lines += [f"    (void){p.name};" for p in row.parameters or ()]
    lines.append(f"    {ERROR_TYPE} found = {'hipSuccess' if Word.COLD in row.words else 'device_ready()'};")
    lines += [f"    if (!found)\n        found = {check};" for check in _checks(row)]
    lines.append(f"    return note(found ? found : {result});\n}}\n")
    return "\n".join(lines)


def _checks(row: ApiFunction) -> Iterator[str]:
    """Expressions that are errors."""
    parameters = row.parameters or ()
    for p in parameters:
        if p.handle:
            check = f"check_{p.handle}({p.name})"
            check = f"({check} ? {p.error} : hipSuccess)" if p.error else check
            yield f"{p.name} ? {check} : hipSuccess" if p.optional else check
        elif p.pointer and not p.optional:
            yield f"{p.name} ? hipSuccess : {p.error}"
        if p.test == "device":
            yield f"device_check({p.name}) ? {p.error} : hipSuccess"
        elif p.test:
            yield f"{_within(p.name, p.test)} ? hipSuccess : {p.error}"
    stream = next((p.name for p in parameters if p.handle == "stream"), "NULL")
    for word in (Word.UNSAFE, Word.LEGACY):
        if word in row.words:
            yield f"check_{word.value}()"
    if Word.RECORDED in row.words:
        yield f"check_recorded({stream})"


def _within(name: str, test: str) -> str:
    """Whether a number is in a set."""
    if test.startswith("&"):
        return f"(({name}) & ~({test[1:]}ull)) == 0"
    parts = []
    for part in test.split("|"):
        low, _, high = part.partition("..")
        parts.append(f"between({name}, {low}, {high})" if high else f"{name} == {low}")
    return f"({' || '.join(parts)})"


def _for_thread(row: ApiFunction, of: ApiFunction) -> str:
    arguments = ", ".join(p.name for p in of.parameters or ())
    return (
        f"API {of.declare(row.name)};\n{of.declare(row.name)}\n{{\n    bool before = default_stream_of_thread(true);\n"
        f"    {ERROR_TYPE} result = {of.name}({arguments});\n    default_stream_of_thread(before);\n"
        "    return result;\n}\n"
    )


def stubs(rows: tuple[ApiFunction, ...]) -> str:
    """missing.c: what is exported but not implemented. Arguments are ignored, whatever they are."""
    body = [
        f"API hipError_t {row.name}(void);\nhipError_t {row.name}(void)\n{{\n"
        "    static atomic_flag said = ATOMIC_FLAG_INIT;\n"
        f'    return not_supported("{row.name}", &said);\n}}\n'
        for row in rows
        if not row.implemented and not row.alias_of and not row.thread_form_of
    ]
    return "\n".join(['#include "checks.h"\n', *body])


def aliases(rows: tuple[ApiFunction, ...]) -> list[str]:
    """Linker options."""
    return [f"-Wl,--defsym={row.name}={row.alias_of}" for row in rows if row.alias_of]


def version_script(rows: tuple[ApiFunction, ...]) -> str:
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


def api_names_header() -> str:
    """api_names.h: a macro of every number of an API function and its name."""
    lines = [line.split() for line in (HERE / "api_names.txt").read_text().splitlines() if line[0] != "#"]
    pairs = [(int(first) + i, name) for first, *names in lines for i, name in enumerate(names)]
    every = " \\\n".join(f"    NAME({number}, {name})" for number, name in pairs)
    return f"#define ALL_API_NAMES(NAME) \\\n{every}\n"
