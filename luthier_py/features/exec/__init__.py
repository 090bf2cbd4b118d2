"""A whole program under a tool."""
