"""Browsers by the names that people know."""

import pytest

from codehub import user_agents

CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("said", "browser", "system"),
    [
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME}", "Chrome", "Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Edg/129.0", "Edge", "Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Whale/3.27", "Whale", "Windows"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {CHROME}", "Chrome", "ChromeOS"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox", "Linux"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) Version/17.5 Safari/605.1.15", "Safari", "Mac"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) CriOS/126.0 Safari/604.1", "Chrome", "iPhone"),
        ("Mozilla/5.0 (Linux; Android 14) SamsungBrowser/25.0 Chrome/121 Safari/537.36", "Samsung Internet", "Android"),
        ("Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/129.0.0.0 Safari/537.36", "Chrome", "Linux"),
        ("curl/8.9.1", None, None),
        ("", None, None),
    ],
)
def test_a_browser_is_called_what_people_call_it(said: str, browser: str | None, system: str | None) -> None:
    assert (user_agents.browser(said), user_agents.system(said)) == (browser, system)
