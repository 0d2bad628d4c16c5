"""CodeHub: self-hosted coding labs. The version is kept here and nowhere else."""

__version__ = "0.1.0"
