"""The language of an answer with sentences in it: a dependency of the routes that have some."""

from typing import Annotated

from fastapi import Depends, Header, Response

from codehub.i18n import locales
from codehub.i18n.locales import Locale


async def _reader(
    response: Response,
    accept_language: Annotated[str | None, Header(description="Of the sentences: English or Korean.")] = None,
) -> Locale:
    locale = locales.of_request(accept_language or "")
    response.headers["content-language"] = locale.language
    response.headers["vary"] = "accept-language"
    return locale


Reader = Annotated[Locale, Depends(_reader)]
