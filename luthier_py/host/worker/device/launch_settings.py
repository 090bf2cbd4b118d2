"""Options of launches as people give them: on a command line, or in the environment, and there for another process.

In: texts by option, the environment. Out: LaunchOptions, and the variables that say the same. Invariant: an option goes
before its variable; what makes no sense is Invalid, and named as it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.emulator.options.checks import check_names, parse_checks
from luthier_py.emulator.options.clock_kind import parse_clock
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import parse_schedule
from luthier_py.emulator.options.time_limit import parse_instruction_limit, parse_time_limit


@dataclass(frozen=True, slots=True)
class _Spelling:
    """How one of them is given: ``parse`` takes its text, and none, too; ``text`` is the way back."""

    name: str  # of LaunchOptions
    option: str
    variable: str
    parse: Callable[[str], Any]
    text: Callable[[Any], str]


_CHECK = _Spelling("checks", "--check", "LUTHIER_CHECK", parse_checks, lambda checks: ",".join(check_names(checks)))
_SPELLINGS = (
    _Spelling("time_limit", "--time-limit", "LUTHIER_TIME_LIMIT", parse_time_limit,
              lambda seconds: "" if seconds is None else repr(seconds)),
    _Spelling("instruction_limit", "--instruction-limit", "LUTHIER_INSTRUCTION_LIMIT", parse_instruction_limit,
              lambda count: "" if count is None else str(count)),
    _Spelling("clock", "--clock", "LUTHIER_CLOCK", parse_clock, lambda clock: str(clock.value)),
    _Spelling("schedule", "--schedule", "LUTHIER_SCHEDULE", parse_schedule,
              lambda schedule: "" if schedule is None else str(schedule)),
    _CHECK,
)
LAUNCH_VARIABLES = tuple(spelling.variable for spelling in _SPELLINGS)


def launch_options(environment: Mapping[str, str], given: Mapping[str, str] | None = None) -> LaunchOptions:
    """``given``: texts by option; what is not there is the environment's."""
    given = given or {}
    if not given.get(_CHECK.option, "all").strip(" ,"):
        raise Invalid("--check names no check; give all, or some as bounds,races")
    return LaunchOptions(**{spelling.name: _parse_setting(spelling, environment, given) for spelling in _SPELLINGS})


def launch_environment(options: LaunchOptions) -> dict[str, str]:
    """By which :func:`launch_options` gives the same again."""
    return {spelling.variable: spelling.text(getattr(options, spelling.name)) for spelling in _SPELLINGS}


def checks_are_wanted(environment: Mapping[str, str]) -> bool:
    """For who takes no part in launches; what is wrong with them others say."""
    return bool(environment.get(_CHECK.variable))


def _parse_setting(spelling: _Spelling, environment: Mapping[str, str], given: Mapping[str, str]) -> Any:
    name = spelling.option if spelling.option in given else spelling.variable
    text = given.get(name, environment.get(name, ""))
    try:
        return spelling.parse(text)
    except Invalid as error:
        raise Invalid(f"{name}={text}: {error.message}") from None
