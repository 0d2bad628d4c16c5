"""Courses: what a teacher writes once, as a folder of Markdown or by the API, and learners take up as plans."""
