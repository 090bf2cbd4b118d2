"""What a launch is made of: work-groups, waves, their first registers, their memory, their time."""
