"""One launch from its beginning to its counts, faults and findings."""
