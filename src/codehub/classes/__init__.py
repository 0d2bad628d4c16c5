"""Classes: who teaches whom, how people come into a class, and what a class is given to learn."""
