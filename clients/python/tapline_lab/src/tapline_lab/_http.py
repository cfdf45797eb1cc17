from __future__ import annotations

import asyncio
import http.client
import io
import json
import re
import threading
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn, cast

from ._connections import AsyncConnection, Connection, Response, message
from ._errors import TaplineError

_ORIGIN = re.compile(r"http://[A-Za-z0-9.\-]+(:[0-9]{1,5})?/?|http://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?/?")
_CHUNK = 1 << 16
_LONGEST_ERROR = 1 << 20


class Transport:
    """Plain HTTP to one local service, without proxies and redirects."""

    def __init__(self, base_url: str, timeout: float, api_key: str | None = None) -> None:
        if _ORIGIN.fullmatch(base_url) is None:
            raise TaplineError(f"A service's address must look like http://127.0.0.1:8980, got {base_url}.")
        self.origin = base_url.rstrip("/")
        self.timeout = timeout
        self._opener = urllib.request.OpenerDirector()
        self._opener.addheaders = [("User-Agent", "tapline-lab/0.3.0")]
        if api_key:
            self._opener.addheaders.append(("Authorization", f"Bearer {api_key}"))
        self._kept = threading.local()
        # Connections of event loops that are between two requests.
        self._idle: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[AsyncConnection]]
        self._idle = weakref.WeakKeyDictionary()
        for handler in (
            urllib.request.HTTPHandler(),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.HTTPDefaultErrorHandler(),
        ):
            self._opener.add_handler(handler)

    def json(
        self, path: str, body: object = None, *, timeout: float | None = None, method: str | None = None
    ) -> dict[str, Any]:
        """Sends a request (POST if there is a body) and returns the JSON object in the response."""
        data = None if body is None else _encoded(body)
        with self._open(path, data, self.timeout if timeout is None else timeout, method) as response:
            text = response.read()
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise TaplineError(f"The response of {path} is not JSON.") from error
        if not isinstance(answer, dict):
            raise TaplineError(f"The response of {path} is not a JSON object.")
        return answer

    def quick(self, path: str, body: object) -> dict[str, Any]:
        """The same for many short calls: the thread's connection stays open between them."""
        request = self._message(path, body)
        connection: Connection | None = getattr(self._kept, "connection", None)
        for again in (False, True):
            fresh = connection is None
            try:
                if connection is None:
                    connection = self._kept.connection = Connection(self.origin, self.timeout)
                response = connection.ask(request)
                break
            except (http.client.HTTPException, OSError) as error:
                self._close_kept()
                connection = None
                if not fresh and not again and _has_gone(error):
                    continue
                self._raise(error, self.timeout)
            except BaseException:  # KeyboardInterrupt: closing the connection ends the pass
                self._close_kept()
                raise
        if response.closes:
            self._close_kept()
        return cast("dict[str, Any]", json.loads(_body_of(path, response)))

    async def ask(self, path: str, body: object) -> bytes:
        """The body of a response, for many short calls in event loops. Cancelling it closes the connection."""
        request = self._message(path, body)
        loop = asyncio.get_running_loop()
        idle = self._idle.setdefault(loop, [])
        for again in (False, True):
            while idle and not idle[-1].usable:
                idle.pop()
            fresh = not idle
            try:
                connection = idle.pop() if idle else await AsyncConnection.open(self.origin, self.timeout)
                response = await connection.ask(request, self.timeout)
                break
            except (http.client.HTTPException, OSError, asyncio.TimeoutError) as error:
                if not fresh and not again and _has_gone(error):
                    continue
                self._raise(error, self.timeout)
        if response.closes:
            connection.close()
        else:
            idle.append(connection)
        return _body_of(path, response)

    def _message(self, path: str, body: object) -> bytes:
        fields = {"Content-Type": "application/json", **dict(self._opener.addheaders)}
        return message(self.origin, path, fields, _encoded(body))

    def _close_kept(self) -> None:
        connection = getattr(self._kept, "connection", None)
        self._kept.connection = None
        if connection is not None:
            connection.close()

    def put(self, path: str, content: bytes) -> dict[str, Any]:
        """Sends a file and returns the JSON object in the response."""
        with self._open(path, content, self.timeout, "PUT", "application/octet-stream") as response:
            return cast("dict[str, Any]", json.loads(response.read()))

    def content(self, path: str, body: object = None) -> bytes:
        """Returns a response's body. Raises ContentTooShortError if it ends early."""
        file = io.BytesIO()
        self.download(path, file, body)
        return file.getvalue()

    def download(self, path: str, file: BinaryIO, body: object = None) -> None:
        """Writes a response's body to a file. Raises ContentTooShortError if it ends early."""
        with self._open(path, None if body is None else _encoded(body), self.timeout) as response:
            expected, received = response.headers.get("Content-Length"), 0
            while chunk := response.read(_CHUNK):
                received += len(chunk)
                file.write(chunk)
        if expected is not None and received != int(expected):
            sentence = f"The download of {path} ended after {received} of {expected} bytes."
            raise urllib.error.ContentTooShortError(sentence, (path, response.headers))

    @contextmanager
    def _open(
        self, path: str, data: bytes | None, timeout: float, method: str | None = None, kind: str = "application/json"
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {} if data is None else {"Content-Type": kind}
        request = urllib.request.Request(self.origin + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=timeout) as response:
                yield response
        except urllib.error.HTTPError as error:
            with error:
                message = _sentence(error) or f"{path} returned status {error.code}."
            raise TaplineError(message, status=error.code) from None
        except (http.client.HTTPException, OSError) as error:
            self._raise(error, timeout)

    def _raise(self, error: Exception, timeout: float) -> NoReturn:
        explained = self._explained(error, timeout)
        if explained is None:
            raise error
        raise explained from error

    def _explained(self, error: Exception, timeout: float) -> Exception | None:
        """The same error with a message that names the service; None for other errors."""
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, (TimeoutError, asyncio.TimeoutError)):  # one class from Python 3.11 on
            return TimeoutError(f"No response from {self.origin} for {timeout:g} s; the request may still be running.")
        if isinstance(cause, ConnectionRefusedError):
            return urllib.error.URLError(f"nothing listens at {self.origin}; start it with {_starter(self.origin)}")
        if isinstance(cause, (ConnectionError, http.client.HTTPException)):
            kind = type(cause).__name__
            return urllib.error.URLError(f"the connection to {self.origin} broke ({kind})")
        return None


def _has_gone(error: Exception) -> bool:
    """Whether the service may have closed an idle connection, which only shows when it is used."""
    return isinstance(error, (ConnectionError, http.client.HTTPException))


def _body_of(path: str, response: Response) -> bytes:
    if response.status == 200:
        return response.body()
    sentence = _sentence_in(response.body()) or f"{path} returned status {response.status}."
    raise TaplineError(sentence, status=response.status)


def _encoded(body: object) -> bytes:
    """Encodes a body as JSON. Raises TypeError or ValueError with the field that cannot be encoded."""
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError) as error:
        for field, value in body.items() if isinstance(body, dict) else ():
            try:
                json.dumps(value, allow_nan=False, default=_plain)
            except (TypeError, ValueError) as reason:
                raise type(reason)(f"{field}: {reason}") from error
        raise


def _plain(value: object) -> object:
    """Converts ranges and NumPy arrays and numbers to Python values, without importing NumPy."""
    if isinstance(value, range):
        return list(value)
    as_list = getattr(value, "tolist", None)
    if as_list is None:
        raise TypeError(f"A value of type {type(value).__name__} cannot be sent as JSON.")
    return as_list()


def _starter(origin: str) -> str:
    """The command that starts the service at an address, guessed from its port."""
    port = origin.rpartition(":")[2]
    usual = {"8980": "tapline lab", "8971": "tapline serve"}
    return usual.get(port, f"tapline lab or tapline serve, --port {port}")


def _sentence(refusal: urllib.error.HTTPError) -> str | None:
    """The sentence in an error body: `{"error": "…"}`, or OpenAI's `{"error": {"message": "…"}}`."""
    try:
        return _sentence_in(refusal.read(_LONGEST_ERROR))
    except (OSError, http.client.HTTPException):
        return None  # the status is enough


def _sentence_in(text: bytes) -> str | None:
    try:
        error = json.loads(text)["error"]
        sentence = error if isinstance(error, str) else error["message"]
    except (ValueError, KeyError, TypeError):
        return None
    return sentence if isinstance(sentence, str) else None
