"""What comes back from hooks: records through rings, and the numbers, places and sources of reports."""
