"""An emulated GPU: generated host code runs whole waves; see translate for how."""

from luthier_py.emulator.device import EmulatorDevice
from luthier_py.emulator.profile import LaunchProfile

__all__ = ["EmulatorDevice", "LaunchProfile"]
