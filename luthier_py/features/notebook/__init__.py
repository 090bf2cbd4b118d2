"""What notebooks show."""
