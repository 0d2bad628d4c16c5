"""How fast a workspace may write its log: a rate, and a burst that may be used up at once. For the shepherd."""

from codehub.system.kernel import now_seconds


class LogRate:
    def __init__(self, rate: int, burst: int) -> None:
        self._rate = rate  # bytes a second; 0: no limit
        self._burst = burst
        self._left = float(burst)
        self._at = now_seconds()

    def spend(self, count: int) -> None:
        now = now_seconds()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - count
        self._at = now

    def pause(self) -> float | None:
        """Seconds until more may be read; None: now. Waits until a good piece may be, not for each byte."""
        if not self._rate:
            return None
        self.spend(0)
        return None if self._left > 0 else (min(self._burst, self._rate // 10) - self._left) / self._rate
