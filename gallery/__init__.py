"""`make screenshots`: pictures of every page and state, from a real `codehub serve` with a class in it.

`words` has what people would have written, in two languages; `house` furnishes the platform by its API; `shots` lists
the pictures and how each page is reached; `camera` takes them; `sheets` puts them side by side, to be looked at; `tour`
keeps the best ones in docs/.
"""
