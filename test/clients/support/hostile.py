"""A TLS server on loopback that sends what a test says, byte by byte if it wants to, and counts requests."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

Script = Callable[[Any, bytes], None]


class Hostile:
    """Use it as a context manager. `requests` holds each request as it came, `sent` counts bytes."""

    def __init__(self, script: Script, certificate: tuple[str, str] | None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.sent = 0
        self.over = threading.Event()
        self._script = script
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"https://localhost:{self.port}"
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Hostile:
        self._threads[0].start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.over.set()
        # On Linux, closing a listener does not wake who waits for it; a connection does.
        socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            raw, _ = self._listener.accept()
            if self.over.is_set():
                raw.close()
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(raw,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, raw: socket.socket) -> None:
        # A client that goes away is what most scripts are about.
        try:
            raw.settimeout(600)
            connection = raw if self._context is None else self._context.wrap_socket(raw, server_side=True)
            with connection:
                request = self._request(connection)
                self.requests.append(request)
                self._script(Peer(self, connection), request)
        except OSError:
            pass
        finally:
            raw.close()

    def _request(self, connection: socket.socket) -> bytes:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536) or _gone()
        head, _, body = request.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                while len(body) < int(line.split(b":")[1]):
                    body += connection.recv(65536) or _gone()
        return head + b"\r\n\r\n" + body


class Peer:
    """The client's end, as a script sees it."""

    def __init__(self, server: Hostile, connection: socket.socket) -> None:
        self._server, self._connection = server, connection

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)
        self._server.sent += len(data)

    def drip(self, data: bytes, seconds: float = 0.02) -> None:
        """A byte at a time, until the test is over."""
        for index in range(len(data)):
            if self._server.over.wait(seconds):
                return
            self.send(data[index : index + 1])

    def wait(self) -> None:
        """Says nothing until the test is over."""
        self._server.over.wait(600)


def _gone() -> bytes:
    raise ConnectionError


def answer(
    status: str = "200 OK",
    body: bytes = b"",
    headers: tuple[str, ...] = ("Content-Type: application/json",),
    length: bool = True,
) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if length else [])]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
