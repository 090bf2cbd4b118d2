"""Tool: the class that authors derive from, and what they get back after a launch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from luthier_py.analysis import Facts
from luthier_py.errors import Invalid
from luthier_py.ir import Program
from luthier_py.tool.edits import Edits
from luthier_py.tool.mutator import Mutator
from luthier_py.tool.options import Option
from luthier_py.tool.variables import Variable, WaveVariable


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """One launch of an instrumented kernel. ``launch[variable]`` is a tool variable's value after it."""

    index: int                    # of the launch, from 0
    kernel: str
    grid: tuple[int, int, int]    # work-groups
    block: tuple[int, int, int]   # work-items in a work-group
    memory: Mapping[str, bytes]   # by Variable.name

    def __getitem__(self, variable: Variable) -> Any:
        return variable.decode(self.memory[variable.name])

    @property
    def workgroups(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


class Tool:
    """Base of all tools. Variables, WaveVariables, Options and hooks are declared in the class body.

    The first line of the docstring is the tool's description.
    """

    name: ClassVar[str] = ""
    variables: ClassVar[tuple[Variable, ...]] = ()
    wave_variables: ClassVar[tuple[WaveVariable, ...]] = ()
    options: ClassVar[Mapping[str, Option[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        body = list(vars(cls).values())
        cls.name = vars(cls).get("name", cls.__name__)
        cls.variables = (*cls.variables, *(v for v in body if isinstance(v, Variable)))
        cls.wave_variables = (*cls.wave_variables, *(v for v in body if isinstance(v, WaveVariable)))
        cls.options = {**cls.options, **{o.name: o for o in body if isinstance(o, Option)}}

    def __init__(self, **options: Any) -> None:
        """Options as Python values or as text; Invalid when one is unknown or wrong."""
        for name in options.keys() - self.options.keys():
            raise Invalid(f"tool {self.name} has no option {name}; it has {', '.join(self.options) or 'none'}")
        self._options = {
            name: option.parse(options[name]) if name in options else option.initial()
            for name, option in self.options.items()
        }

    @classmethod
    def description(cls) -> str:
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def instrument(self, m: Mutator) -> None:
        """Record the edits; called once for each program."""
        raise NotImplementedError(f"tool {self.name} does not say what to instrument")

    def report(self, launch: LaunchResult) -> Any:
        """What to tell of a launch: any data; by default the tool's variables."""
        return {variable.attribute: launch[variable] for variable in self.variables}

    def text(self, launch: LaunchResult, report: Any) -> str:
        """What to print of a launch for people; by default one line for each item of the report."""
        items = report.items() if isinstance(report, Mapping) else [(self.name, report)]
        return "\n".join(f"{name} = {value}" for name, value in items)

    def files(self, launch: LaunchResult, report: Any) -> Mapping[str, bytes]:
        """What to keep of a launch where files are asked for: content by file name; by default its data and text."""
        data, text = json.dumps(report, indent=2), self.text(launch, report)
        return {f"{self.name}.json": f"{data}\n".encode(), f"{self.name}.txt": f"{text}\n".encode()}


def visit(tool: Tool, program: Program, facts: Facts) -> Edits:
    """The edits that a tool wants of a program."""
    mutator = Mutator(program, facts)
    tool.instrument(mutator)
    return mutator.edits(tool.variables, tool.wave_variables)
