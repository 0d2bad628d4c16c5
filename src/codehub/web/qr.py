"""QR codes as SVG, drawn on the server: dark on light in every scheme, because cameras expect it so. Pure."""

import segno
from markupsafe import Markup


def svg(text: str, label: str) -> Markup:
    """`label`: what it is, for those who cannot see it."""
    made = segno.make(text, error="m", micro=False)
    drawn = made.svg_inline(border=3, omitsize=True, svgclass="qr", lineclass="", light="#fff", title=label)
    return Markup(drawn)  # noqa: S704 (segno escapes the title; the rest is numbers)
