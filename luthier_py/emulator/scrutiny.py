"""How a device's launches are run and looked at beside what they do: by lot, and under checks.

In: options. Out: the same, together. Invariant: without any, generated code is as if there were none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from luthier_py.emulator.checks import Checked, Checks
from luthier_py.emulator.schedule import Schedule
from luthier_py.emulator.settings import Settings


def _ignore(checked: Checked) -> None:
    """Nobody asks."""


@dataclass(frozen=True, slots=True)
class Scrutiny:
    """``found`` is told of each launch that was checked, from the thread that launched."""

    schedule: Schedule | None = None
    checks: Checks = Checks.NONE
    found: Callable[[Checked], None] = _ignore

    @property
    def wanted(self) -> bool:
        """Whether launches are run otherwise than without it."""
        return self.schedule is not None or bool(self.checks)

    def tell(self, checked: Checked) -> None:
        """A launch has ended."""
        if self.checks:
            self.found(checked)

    def settings(self, settings: Settings) -> Settings:
        """For code of such launches."""
        return replace(settings, yields=self.schedule is not None, checks=self.checks)


NO_SCRUTINY = Scrutiny()
