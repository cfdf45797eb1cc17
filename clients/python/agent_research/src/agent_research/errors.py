"""All errors of the client are ResearchError. No message contains the token."""

from __future__ import annotations


class ResearchError(Exception):
    """Base class of all errors. `status` is the HTTP status, if there was a response."""

    status: int | None = None


class InvalidArgument(ResearchError, ValueError):
    """An argument or setting is invalid; nothing was sent."""


class ConnectionFailed(ResearchError):
    """The service could not be reached, or the connection broke."""


class TLSFailed(ResearchError):
    """The service's certificate is not trusted, or the TLS handshake failed."""


class DeadlineExceeded(ResearchError, TimeoutError):
    """The total deadline of the call passed."""


class RedirectRefused(ResearchError):
    """The service answered with a redirect, which was not followed."""


class AnswerTooLarge(ResearchError):
    """The response is larger than the client accepts."""


class AnswerInvalid(ResearchError):
    """The response is invalid: not JSON or UTF-8, ambiguous headers, or for a different study."""


class ChecksumMismatch(AnswerInvalid):
    """The response does not match its X-Content-SHA256, or lacks that header."""


class Refusal(ResearchError):
    """The service refused the request. `code`, `field` and `reason` come from the service, if given."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        field: str | None = None,
        reason: str | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.field = field
        self.reason = reason
        """Why a study was taken down, as given by its author or a moderator: untrusted text."""
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds to wait, as sent by the service, or None."""


class RequestRefused(Refusal):
    """400 and similar: parameters or package are invalid."""


class NotAuthenticated(Refusal):
    """401: the token is missing, invalid, expired or revoked."""


class NotPermitted(Refusal):
    """403: the token lacks the scope."""


class NotFound(Refusal):
    """404: no such study, or a draft saved with another token."""


class Gone(Refusal):
    """410: taken down after publication (`code` withdrawn or removed, `reason`), or a deleted draft."""


class QuotaExceeded(Refusal):
    """429: retry after `retry_after` seconds."""


class ServiceUnavailable(Refusal):
    """503 and other errors of the service."""


class DraftMayExist(ResearchError):
    """A draft was sent, but it is unknown whether it was saved.

    For a day, the same call with `idempotency_key` returns the existing draft instead of creating a second one.
    """

    def __init__(self, message: str, *, idempotency_key: str, status: int | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        self.status = status
