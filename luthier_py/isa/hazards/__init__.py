"""What must lie between two instructions: wait states, hazard patterns, waits that code must have."""
