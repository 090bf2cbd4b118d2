"""An emulated GPU: generated host code runs whole waves; see translate for how."""

from typing import TYPE_CHECKING

from luthier_py.exports import loaded_when_asked

if TYPE_CHECKING:
    from luthier_py.emulator.cycle_account import LaunchCycles
    from luthier_py.emulator.device import EmulatorDevice
    from luthier_py.emulator.launch_options import LaunchOptions
    from luthier_py.emulator.profile import LaunchProfile
    from luthier_py.emulator.resident import PacketDevice

__all__ = ["EmulatorDevice", "LaunchCycles", "LaunchOptions", "LaunchProfile", "PacketDevice"]
__getattr__ = loaded_when_asked(__name__, {
    "cycle_account": "LaunchCycles",
    "device": "EmulatorDevice",
    "launch_options": "LaunchOptions",
    "profile": "LaunchProfile",
    "resident": "PacketDevice",
})  # fmt: skip
