"""What would serve a kernel that a tool could not: found by trying, at the moment of the refusal.

In: a code object, the tool, the kernel. Out: what to write on the command line instead. Invariant: what is named was
carried out on this very kernel, and inserted something.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from luthier_py.base.errors import LuthierError, OutOfRegisters
from luthier_py.rewrite.inject.apply import inject
from luthier_py.rewrite.jit import compile_hooks
from luthier_py.rewrite.pipeline import plan
from luthier_py.rewrite.tool import Option, Place, Tool, tools

ENOUGH = 2
SECONDS = 5.0  # after which no other one is begun: a program may be waiting


def find_alternatives(code: bytes, tool: Tool, kernel: str) -> list[str]:
    """At most ENOUGH of them, the tool's own other modes first."""
    started = time.monotonic()
    found: list[str] = []
    for words, other in _others(tool):
        if len(found) == ENOUGH or time.monotonic() - started > SECONDS:
            break
        if _serves(code, other, kernel):
            found.append(words)
    return found


def advice(code: bytes, tool: Tool, kernel: str) -> str:
    """The same as the end of a message; empty where nothing serves it."""
    found = find_alternatives(code, tool, kernel)
    return f"; this kernel is served by {' or '.join(found)}" if found else ""


@contextmanager
def suggest_remedies(code: bytes, tool: Tool) -> Iterator[None]:
    """An OutOfRegisters error also names choices that need fewer registers."""
    try:
        yield
    except OutOfRegisters as error:
        kernel = error.where.kernel if error.where else None
        raise OutOfRegisters(error.message + (advice(code, tool, kernel) if kernel else ""), error.where) from error


def _others(tool: Tool) -> Iterator[tuple[str, Tool]]:
    """The tool with another choice of an option; each of several tools alone; for an installed tool, the other
    installed ones."""
    for name, option in tool.options.items():
        for choice in option.choices:
            if choice != tool.option_values[name]:
                yield f"`-O {name}={Option.show(choice)}`", tool.remade(**{name: choice})
    if len(tool.together) > 1:
        yield from ((f"`-t {part.name}`", part) for part in tool.together)
    installed = tools()
    for name, other in sorted(installed.items()) if type(tool) in installed.values() else ():
        if other is not type(tool) and not other.asks_first:
            yield f"`-t {name}`", other()


def _serves(code: bytes, tool: Tool, kernel: str) -> bool:
    try:
        planned = plan(code, tool, kernels=[kernel])
        edits, facts = planned.edits, planned.facts
        facts = facts.with_instead(edits.standing, edits.written).with_reads(*map(edits.reads, Place))
        payloads = compile_hooks(edits, planned.program.isa, set())
        patched = inject(planned.program, facts, edits, payloads, False)
    except LuthierError:
        return False
    return any(row.name == kernel for row in patched.report)
