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
    body: bytes = field(repr=False)  # it could quote the token

    def single(self, name: str) -> str | None:
        """A header's value. Raises AnswerInvalid where it stands more than once."""
        return _single(self.headers, name)


@dataclass(frozen=True)
class Failure:
    """Why there is no answer, and whether any byte of the request may have been taken by the service."""

    error: ResearchError
    sent: bool


class _BoundedSocket(ssl.SSLSocket):
    """Ends every wait at one moment, however often the other side sends a byte, and takes so many bytes.

    The limits stand here, below http.client, which itself reads headers, interim answers, trailers and
    malformed chunks for as long as they come.
    """

    deadline = math.inf
    allowance = 0

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        self.settimeout(_left(self.deadline))
        received = super().recv_into(buffer, nbytes, flags)
        self.allowance -= received
        if self.allowance < 0:
            raise AnswerTooLarge("The answer is larger than what is accepted, headers and framing included.")
        return received

    def send(self, data: Any, flags: int = 0) -> int:
        self.settimeout(_left(self.deadline))
        return super().send(data, flags)


class _Connection(http.client.HTTPSConnection):
    """HTTPS straight to one address, without proxy: one deadline for connecting, TLS and talking."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, deadline: float, most: int) -> None:
        super().__init__(host, port, context=context)
        self._tls = context
        self._deadline = deadline
        self._most = most

    def connect(self) -> None:
        raw = _connected(self.host, self.port, self._deadline)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(_left(self._deadline))  # OpenSSL's whole handshake counts as one wait
            tls = cast(_BoundedSocket, self._tls.wrap_socket(raw, server_hostname=self.host))
        except BaseException:
            raw.close()
            raise
        tls.deadline = self._deadline
        tls.allowance = 2 * self._most + _FRAMING
        self.sock = tls


class Transport:
    """One request, one connection, at most one answer. Never raises what could hold the token."""

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
        """Sends a request and reads the answer: at most `most` bytes, until `deadline` (time.monotonic).

        Failures are returned, not raised: frames of http.client hold the request's headers, and a traceback
        would carry them to whoever prints local variables.
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
            return Failure(DeadlineExceeded(f"{self._origin} did not answer within the deadline."), sent)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            return Failure(self._explained(error, sent), sent)
        finally:
            connection.close()

    def _explained(self, error: Exception, sent: bool) -> ResearchError:
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"{error.verify_message}; a CA of its own is given as ca_file"
            return TLSFailed(f"The certificate of {self._origin} is not accepted: {reason}.")
        if isinstance(error, ssl.SSLError) and not sent:
            return TLSFailed(f"{self._origin} does not speak TLS as it should ({error.reason}).")
        # UnicodeError: labels that the domain name system cannot have.
        if isinstance(error, (socket.gaierror, UnicodeError)):
            return ConnectionFailed(f"The name of {self._origin} is not known.")
        if isinstance(error, ConnectionRefusedError):
            return ConnectionFailed(f"Nothing listens at {self._origin}.")
        # Only the kind: http.client's messages quote what came.
        kind = type(error).__name__
        if isinstance(error, http.client.HTTPException) and not isinstance(
            error, (http.client.IncompleteRead, http.client.RemoteDisconnected)
        ):
            return AnswerInvalid(f"{self._origin} did not answer in HTTP as it should ({kind}).")
        return ConnectionFailed(f"The connection to {self._origin} broke ({kind}).")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """Tries the addresses of a name in turn; none may use up the time of those after it."""
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
    """Sends the rest of a request. A service may refuse it and hang up before it has read everything."""
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
        error = RedirectRefused(f"The service answered with a redirect ({status}); it was not followed.")
        error.status = status
        raise error
    if not 200 <= status < 300:
        # The status says what happened; a body that cannot be read adds nothing to it.
        try:
            body = _body(response, _LONGEST_REFUSAL)
        except (OSError, http.client.HTTPException, ResearchError):
            body = b""
        return Answer(status, response.headers, body)
    if (_single(response.headers, "Content-Encoding") or "identity").lower() != "identity":
        raise AnswerInvalid("The answer is compressed, which was not asked for.")
    return Answer(status, response.headers, _body(response, most))


def _body(response: http.client.HTTPResponse, most: int) -> bytes:
    length = _single(response.headers, "Content-Length")
    if length is not None and response.headers.get("Transfer-Encoding") is not None:
        raise AnswerInvalid("The answer says its length in two ways.")
    if length is not None and re.fullmatch("[0-9]{1,18}", length) is None:
        raise AnswerInvalid("The answer's Content-Length is not a number.")
    if length is not None and int(length) > most:
        raise AnswerTooLarge(f"The answer has {int(length)} bytes; at most {most} are accepted.")
    parts: list[bytes] = []
    received = 0
    while part := response.read(min(_CHUNK, most + 1 - received)):
        parts.append(part)
        received += len(part)
        if received > most:
            raise AnswerTooLarge(f"The answer has more than {most} bytes.")
    if length is not None and received != int(length):
        raise ConnectionFailed(f"The answer ended after {received} of {length} bytes.")
    return b"".join(parts)


def _single(headers: http.client.HTTPMessage, name: str) -> str | None:
    values: list[str] = headers.get_all(name) or []
    if len(values) > 1:
        raise AnswerInvalid(f"The answer has {len(values)} headers {name}.")
    return values[0].strip() if values else None
