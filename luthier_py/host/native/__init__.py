"""What C libraries inside other people's programs share: how they are built, how they speak to a worker."""
