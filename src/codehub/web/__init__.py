"""The application that answers HTTP: middleware, pages in two languages, live updates."""
