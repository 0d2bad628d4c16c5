"""How long to wait before trying again: used by loops, child processes and operations alike."""


def back_off(failures_in_a_row: int, first: float, longest: float) -> float:
    """How long to wait after so many failures: doubled each time, within a bound."""
    doublings = min(failures_in_a_row - 1, 30)  # beyond that the bound has long won, and floats end
    return min(first * 2.0**doublings, longest)
