"""What other houses ask of an instruction: its accesses, its class, what it does to modes, waves, and denormals."""
