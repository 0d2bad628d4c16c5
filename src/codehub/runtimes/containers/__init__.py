"""Programs that run in containers of the platform's own image, whichever engine starts them: small, and without rights.

`relay` stands beside an IDE and is the only way to it, `job` works on one home and ends.
"""
