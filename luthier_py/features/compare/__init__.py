"""Two runs or two builds beside each other."""
