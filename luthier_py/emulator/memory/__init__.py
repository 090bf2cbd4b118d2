"""Device memory and its allocations, and host memory that launches use."""
