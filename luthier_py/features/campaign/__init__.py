"""Campaigns: one thing, run again and again with something varied. `engine` runs them, on `workers`, with a `store`."""
