"""HTTP: the application, its middleware, problem bodies (error to status, once), pages."""
