"""What the API of every capability stands on: the login dependency, services by type, paging, problems, fields."""
