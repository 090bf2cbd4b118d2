"""The clock that hooks look at, as its counters are compared.

In: the bits of a target's clock, and what `clock()` gave. Out: cycles. Invariant: a clock that wraps around measures
how long a wave ran, modulo its bits, and does not order waves beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier_py.base.late_modules import np
from luthier_py.base.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Clock:
    """``bits``: after which it begins again."""

    bits: int

    @property
    def mask(self) -> int:
        """The largest time of the clock: differences of two times are taken modulo one more."""
        return (1 << self.bits) - 1

    @property
    def compares_waves(self) -> bool:
        """Whether times that different waves look at can be compared."""
        return self.bits == 64

    def between(self, begin: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
        """The cycles of each wave."""
        found: NDArray[Any] = (end - begin) & np.uint64(self.mask)
        return found

    def span(self, begins: NDArray[Any], ends: NDArray[Any]) -> int | None:
        """The cycles from the first begin to the last end; None where waves cannot be compared, or there are none."""
        return int(ends.max() - begins.min()) if self.compares_waves and begins.size else None
