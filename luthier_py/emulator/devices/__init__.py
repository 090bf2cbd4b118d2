"""Emulated devices with their modules, by packets or by calls, and launches that are kept to be run again."""
