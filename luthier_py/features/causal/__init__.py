"""What faster code would be worth: campaigns of experiments on recorded launches."""
