"""The emulator as a program's device."""
