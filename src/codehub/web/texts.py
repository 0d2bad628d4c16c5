"""What pages say, in English and Korean: the texts of `i18n`, and those of the pages in `languages/` beside this."""

from codehub.i18n import texts

OWN = texts.read("codehub.web")
TEXTS: dict[str, dict[str, str]] = {
    language: {**texts.TEXTS[language], **OWN[language]} for language in texts.LANGUAGES
}
