"""What a launch has to check, and in which order and how finely its code is made: data alone."""
