"""Requests, valid and hostile: the table of the conformance suite, and the seeds of the fuzzer."""

from collections.abc import Iterator

H = b"Host: lab.example\r\n"
CLOSE = b"Connection: close\r\n"
# Whoever can be tricked into taking a body's end for the next request sees this one.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: lab.example\r\n\r\n"


def get(line: bytes = b"GET / HTTP/1.1", *fields: bytes) -> bytes:
    return line + b"\r\n" + H + b"".join(field + b"\r\n" for field in fields) + CLOSE + b"\r\n"


def post(*fields: bytes, body: bytes = b"") -> bytes:
    return get(b"POST /upload HTTP/1.1", *fields) + body


def chunks(body: bytes, *fields: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", *fields, body=body)


def with_host(host: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\n" + host + CLOSE + b"\r\n"


METHODS = (b"GET", b"HEAD", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"PROPFIND", b"M-SEARCH", b"get", b"x!y")
TARGETS = (
    b"/a?b=c&d",
    b"/%2e%2e/%00?%zz",
    b'/|{}^"<>\\`',
    b"//double//slash",
    b"/../../etc",
    b"/;p=1;q?x;y",
    b"/?",
    b"/%ED%95%9C%EA%B8%80",
    b"/" + b"a" * 8000,
    b"/a:b@c!$&'()*+,;=-._~[]",
    b"http://lab.example/a?b",
    b"HTTPS://lab.example:8000?b=/c",
    b"http://[::1]",
)
HOSTS = (
    b"lab.example:8000",
    b"127.0.0.1",
    b"[::1]",
    b"[::1]:8000",
    b"lab.example.",
    b"a_b.example",
    b"LAB.Example",
    b"x",
)
FIELDS = {
    "no space after the colon": b"X-A:b",
    "spaces and tabs around a value": b"X-A: \t b c \t ",
    "an empty value": b"X-A:",
    "only blanks as value": b"X-A: \t ",
    "bytes beyond ASCII in a value": b"X-A: \xec\x95\x88\xff\x80",
    "every character of a name": b"!#$%&'*+-.^_`|~09azAZ: x",
    "a value with colons": b"X-A: http://x:1/:",
    "a value with quotes and commas": b'X-A: "a, b", c;d="e\\"f"',
    "a value that looks like a request": b"X-A: GET / HTTP/1.1",
    "a long value": b"X-A: " + b"v" * 30_000,
    "the same header twice": b"X-A: 1\r\nX-A: 2",
    "several cookies": b"Cookie: a=1; b=2\r\nCookie: c=3",
    "ninety headers": b"\r\n".join(b"X-%d: %d" % (n, n) for n in range(90)),
    "a header named like a framing one": b"Content_Length: 5\r\nTransfer_Encoding: chunked",
    "headers named a little like framing ones": b"Transfer---Encoding: chunked\r\n_Content__Length: 5\r\nUp.grade: x",
    "keep-alive and its header": b"Keep-Alive: timeout=5",
    "names listed in Connection": b"Connection: x-a, x-b\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3",
    "TE and Trailer": b"TE: trailers\r\nTrailer: X-Sum",
    "an upgrade nobody here speaks": b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    "an authorization": b"Authorization: Bearer x",
}
BODIES = {
    "of no length": (b"Content-Length: 0", b""),
    "of one byte": (b"Content-Length: 1", b"x"),
    "with zeros before the length": (b"Content-Length: 0005", b"hello"),
    "with line ends": (b"Content-Length: 8", b"\r\n\r\n\r\n\r\n"),
    "that looks like a request": (b"Content-Length: %d" % len(SMUGGLED), SMUGGLED),
    "with NUL and high bytes": (b"Content-Length: 4", b"\0\xff\x80\n"),
    "of 100 KB": (b"Content-Length: 100000", b"z" * 100_000),
    "with a blank before the length": (b"Content-Length: \t5 ", b"hello"),
}
CHUNKED = {
    "one chunk": b"5\r\nhello\r\n0\r\n\r\n",
    "several chunks": b"1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n",
    "no chunk": b"0\r\n\r\n",
    "hexadecimal sizes of both cases": b"a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n",
    "zeros before a size": b"0000005\r\nhello\r\n000\r\n\r\n",
    "an extension": b"5;x\r\nhello\r\n0;y\r\n\r\n",
    "an extension with a value": b"5;x=y;z=1\r\nhello\r\n0\r\n\r\n",
    "an extension with a quoted value": b'5;x="a b;c"\r\nhello\r\n0\r\n\r\n',
    "a trailer": b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
    "two trailers": b"0\r\nX-Sum: 1\r\nX-Other:2\r\n\r\n",
    "line ends in the data": b"4\r\n\r\n\r\n\r\n0\r\n\r\n",
    "data that looks like the end": b"5\r\n0\r\n\r\n\r\n0\r\n\r\n",
    "a large chunk": b"20000\r\n" + b"q" * 0x20000 + b"\r\n0\r\n\r\n",
    "a thousand chunks": b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n",
}


def valid() -> Iterator[tuple[str, bytes]]:
    yield from ((f"method {m.decode()}", get(m + b" /m HTTP/1.1")) for m in METHODS)
    yield "the asterisk of OPTIONS", get(b"OPTIONS * HTTP/1.1")
    yield from ((f"target {n}", get(b"GET " + t + b" HTTP/1.1")) for n, t in enumerate(TARGETS))
    yield from ((f"host {h.decode()}", with_host(b"Host: " + h + b"\r\n")) for h in HOSTS)
    yield "a host in lower case letters", with_host(b"host:lab.example\r\n")
    yield from ((f"field: {name}", get(b"GET /f HTTP/1.1", f)) for name, f in FIELDS.items())
    yield from ((f"body {name}", post(f, body=b)) for name, (f, b) in BODIES.items())
    yield from ((f"chunked: {name}", chunks(b)) for name, b in CHUNKED.items())
    yield "chunked spelled Chunked", post(b"Transfer-Encoding: Chunked", body=CHUNKED["one chunk"])
    yield "chunked with blanks around", post(b"transfer-encoding:\tchunked  ", body=CHUNKED["one chunk"])
    yield "a body with GET", get(b"GET /b HTTP/1.1", b"Content-Length: 3") + b"abc"
    yield (
        "a chunked body with DELETE",
        get(b"DELETE /b HTTP/1.1", b"Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n",
    )
    yield "an absolute target with OPTIONS", get(b"OPTIONS http://lab.example HTTP/1.1")
    yield "an empty line before", b"\r\n" + get()
    yield "four empty lines before", b"\r\n" * 4 + get()
    yield "an empty line after a body", b"POST / HTTP/1.1\r\n" + H + b"Content-Length: 2\r\n\r\nhi\r\n" + get()
    yield "HTTP/1.0 with a host", b"GET /old HTTP/1.0\r\n" + H + b"\r\n"
    yield "HTTP/1.0 without a host", b"GET /old HTTP/1.0\r\n\r\n"
    yield "HTTP/1.0 with a body", b"POST /old HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi"
    yield "two in a row", b"GET /1 HTTP/1.1\r\n" + H + b"\r\n" + get(b"GET /2 HTTP/1.1")
    body = b"POST /%d HTTP/1.1\r\n" + H + b"Content-Length: 3\r\n\r\nabc"
    yield "three with bodies in a row", body % 1 + body % 2 + chunks(CHUNKED["a trailer"])
    yield "fifty in a row", b"".join(b"GET /%d HTTP/1.1\r\n" % n + H + b"\r\n" for n in range(49)) + get()


def _te(value: bytes, name: bytes = b"Transfer-Encoding:") -> bytes:
    return post(name + value, body=b"0\r\n\r\n")


ENCODINGS: dict[bytes, int] = {
    b" xchunked": 400, b" chunkedx": 400, b" chunked, identity": 400, b" identity, chunked": 400, b" identity": 501,
    b" gzip, chunked": 400, b" gzip": 501, b" chunked, chunked": 400, b" chunked,": 400, b" ,chunked": 400,
    b" chunked;q=1": 400, b' "chunked"': 400, b" chunk ed": 501, b" \x0bchunked": 400, b" chunked\x0c": 400,
    b" chunked\0": 400, b"\n chunked": 400, b"\r chunked": 400, b"": 501, b" ": 501, b"\r\n chunked": 400,
    b" ch\xc5\xaanked": 501, b" chunked\r": 400, b" cow\r\nTransfer-Encoding: chunked": 400,
    b" chunked\r\nTransfer-Encoding: chunked": 400, b" chunked\r\nTransfer-Encoding: identity": 400,
}  # fmt: skip
LENGTHS = (
    b"5, 5", b"5 5", b"+5", b"-1", b"0x5", b"5.0", b"", b" ", b"5;", b"5\0", b"1_000", b"1e3", b"\xef\xbc\x95", b"five",
    b"99999999999999999999", b"5\r\nContent-Length: 5", b"5\r\nContent-Length: 6", b"5\r\n Content-Length: 6", b"5\x0b",
    b"5,", b"0, 5",
)  # fmt: skip
BAD_CHUNKS = {
    "a letter as size": b"G\r\n", "a negative size": b"-1\r\n", "a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "a size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n", "no size": b"\r\nhello\r\n0\r\n\r\n",
    "a blank before the size": b" 5\r\nhello\r\n0\r\n\r\n", "a blank after the size": b"5 \r\nhello\r\n0\r\n\r\n",
    "a tab after the size": b"5\t;x\r\nhello\r\n0\r\n\r\n", "a bare line feed after the size": b"5\nhello\r\n0\r\n\r\n",
    "a bare return after the size": b"5\rhello\r\n0\r\n\r\n", "no line end after the data": b"5\r\nhello0\r\n\r\n",
    "a line feed after the data": b"5\r\nhello\n0\r\n\r\n", "more data than announced": b"3\r\nhello\r\n0\r\n\r\n",
    "less data than announced": b"6\r\nhello\r\n0\r\n\r\n", "an enormous size": b"1" + b"0" * 16 + b"\r\n",
    "a size beyond 64 bits": b"f" * 20 + b"\r\nx", "a NUL in an extension": b"5;a\0\r\nhello\r\n0\r\n\r\n",
    "a line feed in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "a return in an extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "an open quote in an extension": b'5;a="b\r\nhello\r\n0\r\n\r\n', "a long extension": b"5;" + b"a" * 300 + b"\r\n",
    "an extension without a name": b"5;\r\nhello\r\n0\r\n\r\n", "a bare line feed at the end": b"0\r\n\n",
    "a trailer without a colon": b"0\r\nbad\r\n\r\n", "a folded trailer": b"0\r\nX: a\r\n b\r\n\r\n",
    "a blank in a trailer's name": b"0\r\nX : a\r\n\r\n", "a line feed in the trailers": b"0\r\nX: a\nY: b\r\n\r\n",
    "a NUL in a trailer": b"0\r\nX: a\0\r\n\r\n", "a return in a trailer": b"0\r\nX: a\r\r\n\r\n",
    "endless trailers": b"0\r\nX: " + b"a" * 9000, "underscores in a size": b"1_0\r\n", "a decimal point": b"5.0\r\n",
}  # fmt: skip
LINES = {
    "bare line feeds": b"GET / HTTP/1.1\nHost: lab.example\n\n",
    "one bare line feed": b"GET / HTTP/1.1\r\nHost: lab.example\nX: y\r\n\r\n",
    "a bare line feed before the empty line": b"GET / HTTP/1.1\r\nHost: lab.example\n\r\n\r\n",
    "an empty line of one line feed": b"GET / HTTP/1.1\r\nHost: lab.example\r\n\n",
    "bare returns": b"GET / HTTP/1.1\rHost: lab.example\r\r",
    "a return in a value": get(b"GET / HTTP/1.1", b"X: a\rb"),
    "a return at a value's end": get(b"GET / HTTP/1.1", b"X: a\r"),
    "a return before a name": get(b"GET / HTTP/1.1", b"\rX: a"),
    "a line feed in a value": get(b"GET / HTTP/1.1", b"X: a\nY: b"),
    "a NUL in a value": get(b"GET / HTTP/1.1", b"X: a\0b"),
    "a NUL in a name": get(b"GET / HTTP/1.1", b"X\0: a"),
    "a blank before the colon": get(b"GET / HTTP/1.1", b"X : a"),
    "a tab before the colon": get(b"GET / HTTP/1.1", b"X\t: a"),
    "a blank in a name": get(b"GET / HTTP/1.1", b"X Y: a"),
    "no name": get(b"GET / HTTP/1.1", b": a"),
    "no colon": get(b"GET / HTTP/1.1", b"X-A"),
    "folding with a blank": get(b"GET / HTTP/1.1", b"X: a\r\n b"),
    "folding with a tab": get(b"GET / HTTP/1.1", b"X: a\r\n\tb"),
    "folding of the first header": b"GET / HTTP/1.1\r\n Host: lab.example\r\n\r\n",
    "a name beyond ASCII": get(b"GET / HTTP/1.1", b"X\xc3\xa9: a"),
    "a name in brackets": get(b"GET / HTTP/1.1", b"[X]: a"),
    "a control character": get(b"GET / HTTP/1.1", b"X: \x01"),
    "a vertical tab": get(b"GET / HTTP/1.1", b"X: a\x0bb"),
    "a delete character": get(b"GET / HTTP/1.1", b"X: \x7f"),
    "no version": b"GET /\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\n" + H + b"\r\n",
    "an empty target": b"GET  HTTP/1.1\r\n" + H + b"\r\n",
    "a blank in the target": get(b"GET /a b HTTP/1.1"),
    "two blanks": get(b"GET  / HTTP/1.1"),
    "tabs between the words": get(b"GET\t/\tHTTP/1.1"),
    "a blank before the method": get(b" GET / HTTP/1.1"),
    "a blank after the version": get(b"GET / HTTP/1.1 "),
    "a version in small letters": get(b"GET / http/1.1"),
    "a version of two digits": get(b"GET / HTTP/1.10"),
    "a version without a dot": get(b"GET / HTTP/11"),
    "an absolute target without a host": get(b"GET http:///a HTTP/1.1"),
    "an absolute target with a user": get(b"GET http://u:p@lab.example/ HTTP/1.1"),
    "an absolute target of another scheme": get(b"GET ftp://lab.example/ HTTP/1.1"),
    "an absolute target with a fragment": get(b"GET http://lab.example/#a HTTP/1.1"),
    "an absolute target with a bad host": get(b"GET http://-lab/ HTTP/1.1"),
    "an absolute target and no Host": b"GET http://lab.example/ HTTP/1.1\r\n\r\n",
    "an authority as target": get(b"GET lab.example:80 HTTP/1.1"),
    "a relative target": get(b"GET a/b HTTP/1.1"),
    "the asterisk without OPTIONS": get(b"GET * HTTP/1.1"),
    "a fragment": get(b"GET /a#b HTTP/1.1"),
    "a target beyond ASCII": get(b"GET /\xc3\xa9 HTTP/1.1"),
    "a NUL in the target": get(b"GET /\0 HTTP/1.1"),
    "a delete character in the target": get(b"GET /\x7f HTTP/1.1"),
    "a bad character in the method": get(b"GE(T / HTTP/1.1"),
    "the hello of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 40,
    "a bare line feed before": b"\n" + get(),
    "a bare line feed after an empty line": b"\r\n\n" + get(),
}
HOSTS_REFUSED = {
    "missing": b"", "empty": b"Host:\r\n", "blank": b"Host: \r\n", "twice": b"Host: a\r\nHost: a\r\n",
    "twice, different": b"Host: a\r\nHost: b\r\n", "with a blank": b"Host: a b\r\n", "with a user": b"Host: u@a\r\n",
    "with a path": b"Host: a/b\r\n", "a list": b"Host: a, b\r\n", "with a bad port": b"Host: a:b\r\n",
    "with a huge port": b"Host: a:65536\r\n", "with an open bracket": b"Host: [::1\r\n", "a URL": b"Host: http://a\r\n",
    "beyond ASCII": b"Host: \xc3\xa9\r\n", "very long": b"Host: " + b"a" * 300 + b"\r\n",
    "with a query": b"Host: a?b\r\n",
    "with percents": b"Host: a%00\r\n", "a star": b"Host: *\r\n", "only a port": b"Host: :80\r\n",
    "with a backslash": b"Host: a\\b\r\n", "with two ports": b"Host: a:1:2\r\n",
    "beginning with a dash": b"Host: -a\r\n",
}  # fmt: skip


def hostile() -> Iterator[tuple[str, bytes, int]]:
    """(name, bytes, the status it is refused with)"""
    both = (b"Content-Length: 5", b"Transfer-Encoding: chunked")
    yield "length and chunks", post(*both, body=b"0\r\n\r\n"), 400
    yield "chunks and length", post(*reversed(both), body=b"0\r\n\r\n"), 400
    yield "a length of nothing and chunks", post(b"Content-Length: 0", both[1], body=b"0\r\n\r\n"), 400
    yield "length and an unknown encoding", post(both[0], b"Transfer-Encoding: x", body=b"hello"), 400
    yield from ((f"encoding {value!r}", _te(value), status) for value, status in ENCODINGS.items())
    yield "encoding with a blank before the colon", _te(b" chunked", b"Transfer-Encoding :"), 400
    yield "encoding folded from a header", post(b"X: y\r\n Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400
    yield "encoding after a bare line feed", post(b"X: y\nTransfer-Encoding: chunked", body=b"0\r\n\r\n"), 400
    yield "encoding with HTTP/1.0", b"POST / HTTP/1.0\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400
    yield from ((f"length {value!r}", post(b"Content-Length: " + value, body=b"hello"), 400) for value in LENGTHS)
    yield from ((f"chunks with {name}", chunks(body), 400) for name, body in BAD_CHUNKS.items())
    yield from ((f"a head with {name}", data, 400) for name, data in LINES.items())
    yield from ((f"a host {name}", with_host(host), 400) for name, host in HOSTS_REFUSED.items())
    yield "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505
    yield "HTTP/0.9 with a version", get(b"GET / HTTP/0.9"), 505
    yield "HTTP/1.2", get(b"GET / HTTP/1.2"), 505
    yield "HTTP/3", get(b"GET / HTTP/3.0"), 505
    yield "CONNECT", get(b"CONNECT lab.example:443 HTTP/1.1"), 501
    yield "CONNECT with a path", get(b"CONNECT / HTTP/1.1"), 501
    yield "TRACE", get(b"TRACE / HTTP/1.1"), 501
    yield "an unknown expectation", post(b"Expect: a-pony", b"Content-Length: 0"), 417
    yield "too many headers", get(b"GET / HTTP/1.1", *(b"X: 1" for _ in range(101))), 431
    yield "too large a head", get(b"GET / HTTP/1.1", b"X: " + b"a" * 33_000), 431
    yield "a head without end", b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000, 431
    yield "too long a name", get(b"GET / HTTP/1.1", b"a" * 200 + b": x"), 431
    yield "two authorizations", get(b"GET / HTTP/1.1", b"Authorization: a", b"Authorization: b"), 400
    yield "two origins", get(b"GET / HTTP/1.1", b"Origin: http://a", b"Origin: http://b"), 400


VALID = dict(valid())
HOSTILE = {name: (data, status) for name, data, status in hostile()}
