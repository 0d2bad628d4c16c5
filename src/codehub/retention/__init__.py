"""What is kept, and for how long: the trash, unneeded archives and volumes, old rows, disk use."""
