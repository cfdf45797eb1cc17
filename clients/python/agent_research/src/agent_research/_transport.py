from __future__ import annotations

import http.client
import math
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ._token import Token
from .errors import (
    AnswerInvalid,
    AnswerTooLarge,
    ConnectionFailed,
    DeadlineExceeded,
    RedirectRefused,
    ResearchError,
    TLSFailed,
)

_CHUNK = 1 << 16
_LONGEST_REFUSAL = 1 << 16
_FRAMING = 1 << 20


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes = field(repr=False)  # it may quote the token

    def single(self, name: str) -> str | None:
        """Returns a header's value. Raises AnswerInvalid if it is repeated."""
        return _single(self.headers, name)


@dataclass(frozen=True)
class Failure:
    """The error, and whether the service may have received any part of the request."""

    error: ResearchError
    sent: bool


class _BoundedSocket(ssl.SSLSocket):
    """Enforces a total deadline and a size limit on everything that is received.

    The limits are enforced below http.client, which reads headers, interim responses, trailers and malformed
    chunks without limit.
    """

    deadline = math.inf
    allowance = 0

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        self.settimeout(_left(self.deadline))
        received = super().recv_into(buffer, nbytes, flags)
        self.allowance -= received
        if self.allowance < 0:
            raise AnswerTooLarge("The response, including headers and framing, is too large.")
        return received

    def send(self, data: Any, flags: int = 0) -> int:
        self.settimeout(_left(self.deadline))
        return super().send(data, flags)


class _Connection(http.client.HTTPSConnection):
    """Direct HTTPS without proxy, with one deadline for connecting, TLS and data."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, deadline: float, most: int) -> None:
        super().__init__(host, port, context=context)
        self._tls = context
        self._deadline = deadline
        self._most = most

    def connect(self) -> None:
        raw = _connected(self.host, self.port, self._deadline)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(_left(self._deadline))  # one timeout for the whole TLS handshake
            tls = cast(_BoundedSocket, self._tls.wrap_socket(raw, server_hostname=self.host))
        except BaseException:
            raw.close()
            raise
        tls.deadline = self._deadline
        tls.allowance = 2 * self._most + _FRAMING
        self.sock = tls


class Transport:
    """One request per connection. Never raises errors that could contain the token."""

    def __init__(self, host: str, port: int, origin: str, ca_file: str | None, token: Token) -> None:
        self._host, self._port, self._origin, self._token = host, port, origin, token
        self._context = ssl.create_default_context(cafile=ca_file)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.sslsocket_class = _BoundedSocket

    def exchange(
        self,
        method: str,
        target: str,
        *,
        deadline: float,
        most: int,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Answer | Failure:
        """Sends a request and reads the response: at most `most` bytes, until `deadline` (time.monotonic).

        Failures are returned, not raised: a traceback through http.client would expose the request's headers in
        local variables.
        """
        connection = _Connection(self._host, self._port, self._context, deadline, most)
        sent = False
        try:
            connection.connect()
            connection.putrequest(method, target, skip_accept_encoding=True)
            connection.putheader("Authorization", self._token.authorization())
            for name, value in headers.items():
                connection.putheader(name, value)
            sent = True
            return _read(_answered(connection, body), most)
        except ResearchError as error:
            return Failure(error.with_traceback(None), sent)
        except TimeoutError:
            return Failure(DeadlineExceeded(f"No complete response from {self._origin} within the deadline."), sent)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            return Failure(self._explained(error, sent), sent)
        finally:
            connection.close()

    def _explained(self, error: Exception, sent: bool) -> ResearchError:
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"{error.verify_message}; pass ca_file to trust your own CA"
            return TLSFailed(f"The certificate of {self._origin} is not trusted: {reason}.")
        if isinstance(error, ssl.SSLError) and not sent:
            return TLSFailed(f"TLS error with {self._origin} ({error.reason}).")
        # UnicodeError: invalid domain name labels.
        if isinstance(error, (socket.gaierror, UnicodeError)):
            return ConnectionFailed(f"The host name of {self._origin} does not resolve.")
        if isinstance(error, ConnectionRefusedError):
            return ConnectionFailed(f"Nothing listens at {self._origin}.")
        # Only the type, since http.client's messages quote the response.
        kind = type(error).__name__
        if isinstance(error, http.client.HTTPException) and not isinstance(
            error, (http.client.IncompleteRead, http.client.RemoteDisconnected)
        ):
            return AnswerInvalid(f"{self._origin} sent an invalid HTTP response ({kind}).")
        return ConnectionFailed(f"The connection to {self._origin} broke ({kind}).")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """Tries the addresses of a name in turn, with a share of the remaining time each."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = OSError("no address")
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        raw = socket.socket(family, kind, protocol)
        try:
            raw.settimeout(_left(deadline) / (len(addresses) - index))
            raw.connect(address)
            return raw
        except OSError as error:
            raw.close()
            failure = error
    raise failure


def _answered(connection: _Connection, body: bytes | None) -> http.client.HTTPResponse:
    """Sends the rest of a request. The service may respond and close before it has read everything."""
    broken: OSError | None = None
    try:
        connection.endheaders(body)
    except TimeoutError:
        raise
    except OSError as error:
        broken = error
    try:
        return connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        raise (broken or error) from None


def _read(response: http.client.HTTPResponse, most: int) -> Answer:
    status = response.status
    if 300 <= status < 400:
        error = RedirectRefused(f"The service answered with a redirect ({status}); redirects are not followed.")
        error.status = status
        raise error
    if not 200 <= status < 300:
        # The status is enough if the body cannot be read.
        try:
            body = _body(response, _LONGEST_REFUSAL)
        except (OSError, http.client.HTTPException, ResearchError):
            body = b""
        return Answer(status, response.headers, body)
    if (_single(response.headers, "Content-Encoding") or "identity").lower() != "identity":
        raise AnswerInvalid("The response is compressed, which was not requested.")
    return Answer(status, response.headers, _body(response, most))


def _body(response: http.client.HTTPResponse, most: int) -> bytes:
    length = _single(response.headers, "Content-Length")
    if length is not None and response.headers.get("Transfer-Encoding") is not None:
        raise AnswerInvalid("The response gives its length in two ways.")
    if length is not None and re.fullmatch("[0-9]{1,18}", length) is None:
        raise AnswerInvalid("The response's Content-Length is not a number.")
    if length is not None and int(length) > most:
        raise AnswerTooLarge(f"The response has {int(length)} bytes; at most {most} are accepted.")
    parts: list[bytes] = []
    received = 0
    while part := response.read(min(_CHUNK, most + 1 - received)):
        parts.append(part)
        received += len(part)
        if received > most:
            raise AnswerTooLarge(f"The response has more than {most} bytes.")
    if length is not None and received != int(length):
        raise ConnectionFailed(f"The response ended after {received} of {length} bytes.")
    return b"".join(parts)


def _single(headers: http.client.HTTPMessage, name: str) -> str | None:
    values: list[str] = headers.get_all(name) or []
    if len(values) > 1:
        raise AnswerInvalid(f"The response has {len(values)} {name} headers.")
    return values[0].strip() if values else None
