"""Target IDs: a processor with the settings of its features, `gfx90a:sramecc+:xnack-`.

In: text, as bundles and the HIP runtime spell it. Out: TargetId, and whether a device runs code that was compiled for
one. Invariant: what is not a target with features that it has is refused. (AMDGPUUsage, "Target ID", "Target
Features" and "Generic Processors".)
"""

from __future__ import annotations

from enum import Enum

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.isa.model.target import Target, target


class Setting(Enum):
    """How a code object wants a feature of the processor (XNACK, SRAM-ECC) to be set, or how a device has it."""

    UNSUPPORTED = 0
    ANY = 1
    OFF = 2
    ON = 3


_SIGNS = {"-": Setting.OFF, "+": Setting.ON}


@dataclass(frozen=True, slots=True)
class TargetId:
    """A target ID. ANY, which is not written: of code, that it runs either way; of a device, that the setting is
    unknown."""

    target: Target
    sramecc: Setting
    xnack: Setting

    def __str__(self) -> str:
        signs = {setting: sign for sign, setting in _SIGNS.items()}
        features = (("sramecc", self.sramecc), ("xnack", self.xnack))
        return self.target.name + "".join(f":{name}{signs[s]}" for name, s in features if s in signs)

    def runs(self, code: TargetId) -> bool:
        """Whether a device that is this runs that code."""
        pairs = ((self.sramecc, code.sramecc), (self.xnack, code.xnack))
        fits = all(has is Setting.ANY or wanted in (has, Setting.ANY, Setting.UNSUPPORTED) for has, wanted in pairs)
        return fits and self.target.runs(code.target)

    @property
    def d16_clears(self) -> bool:
        """Whether D16 loads clear the half of the register that they do not load: with SRAM-ECC, a register is written
        whole (GCNSubtarget::d16PreservesUnusedBits; for gfx90a and its successors review D112635). Devices that have
        the feature have it on, unless their target ID says otherwise."""
        return self.target.d16_always_clears or self.target.sramecc and self.sramecc is not Setting.OFF

    def closeness(self, code: TargetId) -> tuple[bool, int]:
        """Of what runs here, the greatest was made most for this: for the very processor, then for its settings."""
        return self.target.name == code.target.name, sum(s in _SIGNS.values() for s in (code.sramecc, code.xnack))


def parse_target_id(text: str) -> TargetId:
    """Invalid for a processor that is not known, or for features that it has not, or that are said twice."""
    name, *features = text.split(":")
    processor = target(name)
    settings = {feature: Setting.ANY if has else Setting.UNSUPPORTED
                for feature, has in (("sramecc", processor.sramecc), ("xnack", processor.xnack))}
    for feature in features:
        if feature[-1:] not in _SIGNS or settings.get(feature[:-1]) is not Setting.ANY:
            raise Invalid(f"target ID {text!r}: {feature!r} is no feature of {name} with + or -, or it is said twice")
        settings[feature[:-1]] = _SIGNS[feature[-1]]
    return TargetId(processor, settings["sramecc"], settings["xnack"])
