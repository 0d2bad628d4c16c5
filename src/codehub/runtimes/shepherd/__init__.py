"""The processes that stand beside and around an IDE: small, standard library only, and alive without the platform.

`main` is the shepherd, one per running workspace, outside its sandbox. `namespaces` builds the sandbox where there is
no bubblewrap. `enter` runs a command inside, `place` writes files into a home, `relay` gives a TCP program a socket.
"""
