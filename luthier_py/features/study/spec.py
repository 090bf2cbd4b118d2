"""A study as it is written: a TOML file, checked before anything runs.

In: a path. Out: a Study. Invariant: what is wrong is Invalid, one line that names the file, the key, and what to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from luthier_py.base.errors import LuthierError
from luthier_py.base.records import dataclass
from luthier_py.features.faults.drawing import TOOL
from luthier_py.features.settings.levels import LEVEL, LEVELS
from luthier_py.features.settings.stack import LUTHIER, STACKS, choose_stack
from luthier_py.features.settings.stack import VARIABLE as STACK
from luthier_py.features.study.campaigns import campaign_of
from luthier_py.features.study.keys import (
    Keys,
    flag,
    number,
    numbers_or_texts,
    read_keys,
    text,
    text_lists,
    texts,
    whole,
)
from luthier_py.host.worker.device.targets import VARIABLE as DEVICE
from luthier_py.host.worker.device.targets import parse_targets
from luthier_py.rewrite.tool import load_tool
from luthier_py.rewrite.tool.discover import names_in

BARE = "bare"  # name of the tool that is none
_INSTEAD = {
    DEVICE: "write `devices` at the top", STACK: "write `stacks` at the top", LEVEL: "write `level` under [[tool]]",
}  # fmt: skip
GPU = "gpu"  # name of the device that the program finds by itself
SECONDS = 600  # that a run may take
COLUMNS = ("program", "arguments", "device", "stack", "kernel")  # that a figure can have a bar for


@dataclass(frozen=True, slots=True)
class StudiedProgram:
    """A [[program]] of a study. ``command``: program and first arguments; ``environment``: variables that it gets
    beside this process's."""

    name: str
    command: tuple[str, ...]
    arguments: Mapping[str, tuple[str, ...]]
    """By name; added to the command."""
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool with its options; ``tool`` is None for the program alone."""

    name: str
    tool: str | None
    options: Mapping[str, str]
    level: str | None = None
    parts: tuple[Mapping[str, Any], ...] = ()
    """Of a campaign of faults: what the child is to inject, a run each."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A tool's metric, summed over launches."""

    tool: str
    metric: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Horizontal bars, each made of parts; a part is a quantity, or one divided by another."""

    name: str
    title: str
    unit: str
    bars: tuple[str, ...]
    parts: Mapping[str, tuple[Quantity, ...]]
    programs: tuple[str, ...]
    share: bool
    """Parts as percentages of their bar."""
    stack: bool
    """Parts one after the other; otherwise each from 0."""


@dataclass(frozen=True, slots=True)
class ItemTable:
    """A list in a tool's reports as a table: a row for each item, a column for each of some fields."""

    title: str
    tool: str
    items: str
    columns: tuple[str, ...]
    programs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """A study's file. ``folder``: where programs run, and where relative paths begin; ``repeat``: runs of each
    combination; ``jobs``: runs at a time, None for one on each CPU; ``timeout``: seconds of a run."""

    title: str
    folder: Path
    devices: tuple[str, ...]
    repeat: int
    jobs: int | None
    timeout: float
    programs: tuple[StudiedProgram, ...]
    tools: tuple[ToolUse, ...]
    figures: tuple[Figure, ...]
    tables: tuple[ItemTable, ...]
    stacks: tuple[str, ...] = (LUTHIER,)
    """Between the programs and emulated devices."""


def read_study(path: Path) -> Study:
    """The study in a file; raises OSError, or Invalid with the key that is wrong."""
    keys = read_keys(path, "a study")
    folder = (path.parent / keys.take("folder", text, ".")).resolve()
    if not folder.is_dir():
        raise keys.wrong("folder", f"{folder} is no folder")
    tools = [_tool(row, folder) for row in keys.rows("tool")]
    campaigns = [ToolUse(each.name, TOOL, each.options, parts=each.parts)
                 for each in map(campaign_of, keys.rows("campaign"))]
    if keys.take("bare", flag, not tools and not campaigns):
        tools.insert(0, ToolUse(BARE, None, {}))
    programs = tuple(map(_program, keys.rows("program")))
    if not programs:
        raise keys.wrong("program", "a study needs at least one, as [[program]]")
    _distinct(keys, "tool", [tool.name for tool in [*tools, *campaigns]])
    _distinct(keys, "program", [program.name for program in programs])
    devices = keys.take("devices", texts, (GPU,))
    if not devices:
        raise keys.wrong("devices", f"name at least one: emulator:TARGET, or {GPU}")
    for device in devices:
        if device.startswith("emulator"):
            parse_targets(device)
        elif campaigns:
            raise keys.wrong("devices", f"faults are judged by the emulator: write emulator:TARGET, not {device}")
    stacks = _stacks(keys)
    study = Study(
        title=keys.take("title", text, path.stem),
        folder=folder,
        devices=devices,
        stacks=stacks,
        repeat=keys.take("repeat", whole, 1),
        jobs=keys.take("jobs", whole, None),
        timeout=keys.take("timeout", number, SECONDS),
        programs=programs,
        tools=(*tools, *campaigns),
        figures=tuple(_figure(row, tools, programs) for row in keys.rows("figure")),
        tables=tuple(_items(row, tools, programs) for row in keys.rows("table")),
    )
    _distinct(keys, "figure", [figure.name for figure in study.figures])
    keys.reject_unknown_keys()
    return study


def _stacks(keys: Keys) -> tuple[str, ...]:
    """Without the key, what LUTHIER_STACK says for all of this shell's programs."""
    stacks = _take_known_names(keys, "stacks", (choose_stack(None),), STACKS)
    if not stacks:
        raise keys.wrong("stacks", f"name at least one: {', '.join(STACKS)}")
    return stacks


def _program(keys: Keys) -> StudiedProgram:
    command = keys.take("command", texts)
    if not command:
        raise keys.wrong("command", "give a program and its arguments, as a list of texts")
    program = StudiedProgram(
        name=keys.take("name", text, Path(command[0]).name),
        command=command,
        arguments=keys.take("arguments", text_lists, {"": ()}),
        environment=keys.take("environment", numbers_or_texts, {}),
    )
    for variable, instead in _INSTEAD.items():
        if variable in program.environment:
            raise keys.wrong("environment", f"{variable} is not a program's: {instead}")
    keys.reject_unknown_keys()
    return program


def _tool(keys: Keys, folder: Path) -> ToolUse:
    tool, options = keys.take("tool", text), keys.take("options", numbers_or_texts, {})
    name = keys.take("name", text, Path(tool).stem)
    level = _take_known_names(keys, "level", (), LEVELS)
    if len(level) > 1:
        raise keys.wrong("level", "give one; a tool at two levels is two, each with its `name`")
    if name == BARE:
        raise keys.wrong("name", f"{BARE} is the program without a tool")
    tool = ",".join(str(folder / part) if ".py" in part else part for part in names_in(tool))
    try:
        load_tool(tool, options)
    except LuthierError as error:
        raise keys.wrong("options" if "option" in error.message else "tool", error.message) from None
    keys.reject_unknown_keys()
    return ToolUse(name, tool, options, level[0] if level else None)


def _figure(keys: Keys, tools: list[ToolUse], programs: tuple[StudiedProgram, ...]) -> Figure:
    name = keys.take("name", text)
    parts = keys.take("parts", numbers_or_texts)
    figure = Figure(
        name=name,
        title=keys.take("title", text, name),
        unit=keys.take("unit", text, ""),
        bars=_take_known_names(keys, "bars", ("program", "arguments"), COLUMNS),
        parts={part: _quotient(keys, f"parts.{part}", words, tools) for part, words in parts.items()},
        programs=_programs(keys, programs),
        share=keys.take("share", flag, False),
        stack=keys.take("stack", flag, True),
    )
    if not name.replace("-", "").replace("_", "").isalnum():
        raise keys.wrong("name", "give letters, digits, - and _: it becomes a file's name")
    keys.reject_unknown_keys()
    return figure


def _quotient(keys: Keys, key: str, words: str, tools: list[ToolUse]) -> tuple[Quantity, ...]:
    """``TOOL:METRIC``, or two of them with `` / `` between."""
    found = []
    for part in words.split(" / "):
        tool, colon, metric = part.strip().partition(":")
        if not colon or not metric or tool not in {known.name for known in tools}:
            names = ", ".join(known.name for known in tools)
            raise keys.wrong(key, f"`{words}`: write TOOL:METRIC, or TOOL:METRIC / TOOL:METRIC; tools are {names}")
        found.append(Quantity(tool, metric))
    if len(found) > 2:
        raise keys.wrong(key, f"`{words}` divides more than once")
    return tuple(found)


def _items(keys: Keys, tools: list[ToolUse], programs: tuple[StudiedProgram, ...]) -> ItemTable:
    items = keys.take("items", text)
    table = ItemTable(
        title=keys.take("title", text, items),
        tool=_take_known_names(keys, "tool", None, [tool.name for tool in tools])[0],
        items=items,
        columns=keys.take("columns", texts),
        programs=_programs(keys, programs),
    )
    keys.reject_unknown_keys()
    return table


def _programs(keys: Keys, programs: tuple[StudiedProgram, ...]) -> tuple[str, ...]:
    names = tuple(program.name for program in programs)
    return _take_known_names(keys, "programs", names, names)


def _take_known_names(keys: Keys, key: str, default: tuple[str, ...] | None, known: Any) -> tuple[str, ...]:
    """One or more of ``known``."""
    found: tuple[str, ...] = keys.take(key, texts, *(() if default is None else (default,)))
    for name in found:
        if name not in known:
            raise keys.wrong(key, f"there is no {name}; there are {', '.join(known)}")
    return found


def _distinct(keys: Keys, key: str, names: list[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise keys.wrong(key, f"two are called {name}; give one of them another `name`")
