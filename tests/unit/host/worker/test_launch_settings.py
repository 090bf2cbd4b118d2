"""Options of launches: from a command line or the environment, and through the environment to another process."""

from __future__ import annotations

from dataclasses import fields

import pytest
from source_tree import ROOT

from luthier_py.base.errors import Invalid
from luthier_py.emulator import LaunchOptions
from luthier_py.emulator.options.checks import ALL, Checks
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.features.settings.run_settings import RunSettings, run_settings
from luthier_py.host.worker.device.launch_settings import LAUNCH_VARIABLES, launch_environment, launch_options
from luthier_py.host.worker.device.settings import device_settings

EVERY = LaunchOptions(0.25, ClockKind.MODEL, Schedule(7), Checks.RACES | Checks.WAITS, instruction_limit=900)
GIVEN = {"--time-limit": "0.25", "--instruction-limit": "900", "--clock": "model", "--schedule": "seed=7",
         "--check": "waits,races"}  # fmt: skip
SET = dict(zip(LAUNCH_VARIABLES, GIVEN.values(), strict=True))


@pytest.mark.parametrize("options", [LaunchOptions(), EVERY, LaunchOptions(checks=ALL), LaunchOptions(time_limit=1e-9)])
def test_a_worker_reads_what_was_wanted(options: LaunchOptions) -> None:
    assert device_settings(launch_environment(options)).launch == options


def test_no_option_is_left_out() -> None:
    assert all(getattr(EVERY, field.name) != getattr(LaunchOptions(), field.name) for field in fields(LaunchOptions))


@pytest.mark.parametrize("page", ["runtime", "studies"])
def test_pages_name_each_variable(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert all(f"`{variable}`" in text for variable in LAUNCH_VARIABLES)


def test_an_option_goes_before_its_variable() -> None:
    assert launch_options({}) == LaunchOptions()
    assert launch_options({}, GIVEN) == launch_options(SET) == EVERY
    other = launch_options(SET, {"--schedule": "default", "--check": "bounds"})
    assert other == LaunchOptions(0.25, ClockKind.MODEL, None, Checks.BOUNDS, instruction_limit=900)


@pytest.mark.parametrize(("option", "variable"), list(zip(GIVEN, LAUNCH_VARIABLES, strict=True)))
def test_what_is_wrong_is_named_as_it_was_given(option: str, variable: str) -> None:
    for place, name in (({}, option), (SET, option)):
        with pytest.raises(Invalid, match=f"^{name}=some: "):
            launch_options(place, {option: "some"})
    with pytest.raises(Invalid, match=f"^{variable}=some: "):
        launch_options({variable: "some"})


def test_without_the_emulator_options_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in SET.items():
        monkeypatch.setenv(name, text)
    assert run_settings(None) == RunSettings(None) and run_settings("hip").launch == LaunchOptions()
    assert run_settings("emulator:gfx90a").launch == EVERY
    for option, text in GIVEN.items():
        with pytest.raises(Invalid, match=f"^{option}: for kernels on the emulator"):
            run_settings(None, {**dict.fromkeys(GIVEN), option: text})
