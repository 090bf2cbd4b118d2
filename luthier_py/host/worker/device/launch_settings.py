"""Options of launches as people give them: on a command line, or in the environment, and there for another process.

In: texts by option, the environment. Out: LaunchOptions, and the variables that say the same. Invariant: an option
overrides its variable; what makes no sense is Invalid, and named as it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.emulator.options.launch_options import LAUNCH_OPTIONS, LaunchOption, LaunchOptions

LAUNCH_VARIABLES = tuple(row.variable for row in LAUNCH_OPTIONS.values())
_CHECK = LAUNCH_OPTIONS["checks"]


def launch_options(environment: Mapping[str, str], given: Mapping[str, str] | None = None) -> LaunchOptions:
    """``given``: texts by option; what is not there is the environment's."""
    given = given or {}
    if not given.get(_CHECK.option, "all").strip(" ,"):
        raise Invalid(f"{_CHECK.option} names no check; give all, or some as bounds,races")
    return LaunchOptions(**{name: _parse_setting(row, environment, given) for name, row in LAUNCH_OPTIONS.items()})


def launch_environment(options: LaunchOptions) -> dict[str, str]:
    """By which :func:`launch_options` gives the same again."""
    values = {row: getattr(options, name) for name, row in LAUNCH_OPTIONS.items()}
    return {row.variable: "" if value is None else row.text(value) for row, value in values.items()}


def checks_are_wanted(environment: Mapping[str, str]) -> bool:
    """Whether checks are requested, without reading which."""
    return bool(environment.get(_CHECK.variable))


def _parse_setting(row: LaunchOption, environment: Mapping[str, str], given: Mapping[str, str]) -> Any:
    name = row.option if row.option in given else row.variable
    text = given.get(name, environment.get(name, ""))
    try:
        return row.parse(text)
    except Invalid as error:
        raise Invalid(f"{name}={text}: {error.message}") from None
