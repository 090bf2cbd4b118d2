"""What a launch is asked to look for, and in which order and how finely its code is made: data alone."""
