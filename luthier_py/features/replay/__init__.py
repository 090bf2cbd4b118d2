"""Launches saved in files, and run again."""
