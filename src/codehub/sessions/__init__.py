"""Learning sessions: what is to be learnt (blueprints), plans of it, and runs, the attempts at it."""
