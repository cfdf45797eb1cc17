"""Everything that the client raises is a ResearchError. No message holds the token."""

from __future__ import annotations


class ResearchError(Exception):
    """Something did not work. `status` is the HTTP status, where the service gave one."""

    status: int | None = None


class InvalidArgument(ResearchError, ValueError):
    """What the client was given cannot be used; nothing was sent."""


class ConnectionFailed(ResearchError):
    """The service could not be reached, or the connection broke."""


class TLSFailed(ResearchError):
    """The service did not prove who it is, or does not speak TLS."""


class DeadlineExceeded(ResearchError, TimeoutError):
    """The total deadline of the call passed."""


class RedirectRefused(ResearchError):
    """The service answered with a redirect. It was not followed."""


class AnswerTooLarge(ResearchError):
    """The answer has more bytes than the client accepts."""


class AnswerInvalid(ResearchError):
    """The answer makes no sense: not JSON, not UTF-8, ambiguous headers, another study than asked for."""


class ChecksumMismatch(AnswerInvalid):
    """The answer's bytes are not those that its X-Content-SHA256 is of, or it has no such header."""


class Refusal(ResearchError):
    """The service refused. `code`, `field` and `reason` are the service's, where it gave them."""

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
        """Why a study was taken down, in the words of who did it: text from elsewhere."""
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds to wait, exactly as the service says; None where it does not say."""


class RequestRefused(Refusal):
    """400 and the like: parameters or package are not valid."""


class NotAuthenticated(Refusal):
    """401: the token is missing, invalid, expired or revoked."""


class NotPermitted(Refusal):
    """403: the token lacks the scope."""


class NotFound(Refusal):
    """404: no such study, or a draft that another token saved."""


class Gone(Refusal):
    """410: it was published and taken down (`code` withdrawn or removed, `reason`), or a deleted draft."""


class QuotaExceeded(Refusal):
    """429: after `retry_after` seconds there is room again."""


class ServiceUnavailable(Refusal):
    """503 and other faults of the service."""


class DraftMayExist(ResearchError):
    """A draft was sent, and whether it was saved is not known.

    The same call with `idempotency_key` gives the draft that is there instead of a second one, for a day.
    """

    def __init__(self, message: str, *, idempotency_key: str, status: int | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        self.status = status
