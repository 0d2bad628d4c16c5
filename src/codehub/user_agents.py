"""What a browser says it is, in the words that people have for it. Pure; for lists of devices and passkeys."""

# In this order: most of them also say that they are one of those below.
BROWSERS = (
    ("KAKAOTALK", "KakaoTalk"),
    ("Whale/", "Whale"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("Linux", "Linux"),
)


def browser(user_agent: str) -> str | None:
    """None: one that we do not know."""
    return next((name for mark, name in BROWSERS if mark in user_agent), None)


def system(user_agent: str) -> str | None:
    return next((name for mark, name in SYSTEMS if mark in user_agent), None)
