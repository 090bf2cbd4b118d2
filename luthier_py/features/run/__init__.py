"""One launch of one kernel."""
