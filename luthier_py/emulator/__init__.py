"""An emulated GPU: generated host code runs whole waves; see translate for how."""

from luthier_py.emulator.cycle_account import LaunchCycles
from luthier_py.emulator.device import EmulatorDevice
from luthier_py.emulator.profile import LaunchProfile
from luthier_py.emulator.resident import PacketDevice

__all__ = ["EmulatorDevice", "LaunchCycles", "LaunchProfile", "PacketDevice"]
