"""The limit for `bench/open_pages.py`: a bare server that writes one line to every open socket, and nothing else."""

import asyncio
import sys

import uvloop


async def main() -> None:
    listeners: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line == b"listen\n":
                listeners.append(writer)
                continue
            for listener in listeners:
                listener.write(b"event: change\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(main())
