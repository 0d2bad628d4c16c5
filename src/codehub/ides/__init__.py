"""IDEs that do not come with the package: an admin asks for one on a page, the coordinator installs it."""
