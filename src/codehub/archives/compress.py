"""zstd around the tar stream, for `worker`: several threads on the way in, one beside the reader on the way out."""

import gzip
import os
import queue
import threading
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

from codehub.archives.model import ArchiveCorruptedError

LEVEL = 3  # zstd's own default; a higher one costs the person's time and saves little on source code
# … but searched the fast way, in level 3's larger tables: a third less work for the same size on a tree of small files
# (whose headers are half of it), 4 % more on a tree of libraries.
TUNING = {"strategy": zstandard.STRATEGY_FAST, "hash_log": 17, "min_match": 6}
MAX_THREADS = 8  # each holds some 12 MB
# Level 3 looks back 2 MB. An archive that wants more memory than this to be read is none of ours.
MAX_WINDOW = 8 * 1024 * 1024
CHUNK = 1024 * 1024
CHUNKS_AHEAD = 8


def compressor(output: BinaryIO) -> zstandard.ZstdCompressionWriter:
    """A file to write to; closing it ends the frame, with a checksum of the content."""
    threads = min(len(os.sched_getaffinity(0)), MAX_THREADS)
    parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, threads=threads, write_checksum=True, **TUNING)
    context = zstandard.ZstdCompressor(compression_params=parameters)
    return context.stream_writer(output, write_size=CHUNK, closefd=False)


def gzipped(output: BinaryIO) -> gzip.GzipFile:
    """For people: every system opens it with a click. Fast rather than small, and without the time of day."""
    return gzip.GzipFile(fileobj=output, mode="wb", compresslevel=1, mtime=0)


class Decompressed:
    """What a compressed stream holds. A thread of its own is always a few chunks ahead, and never more."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._chunks: queue.Queue[bytes | Exception] = queue.Queue(CHUNKS_AHEAD)
        self._chunk = b""
        self._position = 0
        threading.Thread(target=self._decompress, daemon=True, name="decompress").start()

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end <= len(self._chunk):
            taken = self._chunk[self._position : end]
            self._position = end
            return taken
        parts = []
        while count:
            part = self.some(count)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def some(self, most: int) -> memoryview:
        if self._position >= len(self._chunk) and not self._advance():
            raise ArchiveCorruptedError("the archive ends too early")
        taken = memoryview(self._chunk)[self._position : self._position + most]
        self._position += len(taken)
        return taken

    def chunks(self) -> Iterator[bytes]:
        """All of it, for who need not understand it."""
        while self._advance():
            self._position = len(self._chunk)
            yield self._chunk

    def finish(self) -> None:
        """Nothing may come after the end; the compressed stream is read to its end, for its sender."""
        if self._position < len(self._chunk) or self._advance():
            raise ArchiveCorruptedError("the archive goes on after its end")
        while self._source.read(CHUNK):
            pass

    def _advance(self) -> bool:
        following = self._chunks.get()
        if isinstance(following, Exception):
            raise ArchiveCorruptedError(f"the archive cannot be decompressed: {following}")
        self._chunk, self._position = following, 0
        return bool(following)

    def _decompress(self) -> None:
        try:
            context = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
            reader = context.stream_reader(self._source, read_size=CHUNK, read_across_frames=False, closefd=False)
            while chunk := reader.read(CHUNK):
                self._chunks.put(chunk)
            self._chunks.put(b"")
        except Exception as e:  # noqa: BLE001 - whatever it is, the reader must hear of it, or it waits for ever
            self._chunks.put(e)
