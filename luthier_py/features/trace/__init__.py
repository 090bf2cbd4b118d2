"""When launches, work-groups and ranges of programs ran, for trace viewers."""
