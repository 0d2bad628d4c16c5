"""What people read, in their language: history, audit, states, times, sizes. For pages, API and command line alike."""
