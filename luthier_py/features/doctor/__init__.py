"""What works on this computer."""
