"""Connections that stay open between many short calls.

Reading a response with http.client takes longer than some passes of a model. These read only what tapline's services send:
HTTP/1.1 with Content-Length.
"""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
from urllib.parse import urlsplit

_LENGTH = re.compile(rb"\r\nContent-Length: *([0-9]+) *\r\n", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nConnection: *close *\r\n", re.IGNORECASE)
_LONGEST_HEAD = 1 << 16
_CHUNK = 1 << 16


class Response:
    """A response, as far as it has been received."""

    status = 0
    closes = False
    """Whether the service closes the connection after it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._body = -1  # where it starts and ends; -1: unknown
        self._end = -1

    def add(self, data: bytes) -> bool:
        """Takes received bytes. Returns whether the response is complete; raises HTTPException for what is not HTTP."""
        self._bytes += data
        if self._end < 0 and not self._read_head():
            return False
        return len(self._bytes) >= self._end

    def body(self) -> bytes:
        return bytes(memoryview(self._bytes)[self._body : self._end])

    def _read_head(self) -> bool:
        end = self._bytes.find(b"\r\n\r\n")
        if end < 0:
            if len(self._bytes) > _LONGEST_HEAD:
                raise http.client.LineTooLong("head")
            return False
        if not self._bytes.startswith(b"HTTP/1.1 ") or not self._bytes[9:12].isdigit():
            raise http.client.BadStatusLine(self._bytes[:40].decode("latin-1"))
        length = _LENGTH.search(self._bytes, 0, end + 2)
        if length is None:
            raise http.client.UnknownProtocol("no Content-Length")
        self.status = int(self._bytes[9:12])
        self.closes = _CLOSES.search(self._bytes, 0, end + 2) is not None
        self._body = end + 4
        self._end = self._body + int(length[1])
        return True


def message(origin: str, path: str, fields: dict[str, str], body: bytes) -> bytes:
    """A POST request. Raises ValueError for header fields with line breaks."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {origin.removeprefix('http://')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise ValueError("A header field must not have line breaks.")
    return head.encode("latin-1") + body


class Connection:
    """A connection of one thread."""

    def __init__(self, origin: str, timeout: float) -> None:
        self._socket = socket.create_connection(_address(origin), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> Response:
        """Sends a request and returns the whole response. Raises OSError and HTTPException."""
        # Head and body in one packet: of two, the service would wake up twice.
        self._socket.sendall(request)
        response = Response()
        while True:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise http.client.RemoteDisconnected("the connection was closed without a response")
            if response.add(data):
                return response

    def close(self) -> None:
        self._socket.close()


class AsyncConnection(asyncio.Protocol):
    """A connection of an event loop, for one request at a time."""

    @classmethod
    async def open(cls, origin: str, timeout: float) -> AsyncConnection:
        making = asyncio.get_running_loop().create_connection(cls, *_address(origin))
        _, connection = await asyncio.wait_for(making, timeout)
        return connection

    def __init__(self) -> None:
        self.usable = True
        self._transport: asyncio.Transport | None = None
        self._response = Response()
        self._answered: asyncio.Future[Response] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            if self._response.add(data):
                self._settle(self._response)
        except http.client.HTTPException as error:
            self._settle(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._settle(exc or http.client.RemoteDisconnected("the connection was closed without a response"))

    async def ask(self, request: bytes, timeout: float) -> Response:
        """Like Connection.ask. However it ends early, also by cancellation, the connection is closed, which ends the pass."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._response, self._answered = Response(), loop.create_future()
        late = loop.call_later(timeout, self._settle, TimeoutError())
        try:
            self._transport.write(request)
            return await self._answered
        except BaseException:
            self.close()
            raise
        finally:
            late.cancel()
            self._answered = None

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def _settle(self, result: Response | Exception) -> None:
        if self._answered is None or self._answered.done():
            return
        if isinstance(result, Response):
            self._answered.set_result(result)
        else:
            self._answered.set_exception(result)


def _address(origin: str) -> tuple[str, int]:
    parts = urlsplit(origin)
    return str(parts.hostname), parts.port or 80
