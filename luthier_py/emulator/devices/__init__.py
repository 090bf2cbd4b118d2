"""Emulated devices with their modules, by packets or by calls, and launches recorded to be run again."""
