"""`python -m codehub`: how the supervisor starts its roles."""

from codehub.cli import main

main()
