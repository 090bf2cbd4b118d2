"""How something is to be run: devices, levels, stacks, the program's file and what it depends on."""
