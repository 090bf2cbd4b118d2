"""Programs, arguments, tools and devices, every combination, repeated."""
