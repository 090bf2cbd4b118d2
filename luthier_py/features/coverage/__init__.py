"""How far the emulator's results can be believed."""
