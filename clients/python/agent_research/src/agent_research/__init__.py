"""Client for a research studies service: reads published studies and saves private drafts."""

from ._client import ResearchClient
from .errors import (
    AnswerInvalid,
    AnswerTooLarge,
    ChecksumMismatch,
    ConnectionFailed,
    DeadlineExceeded,
    DraftMayExist,
    Gone,
    InvalidArgument,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    RedirectRefused,
    RequestRefused,
    ResearchError,
    ServiceUnavailable,
    TLSFailed,
)

__all__ = [
    "AnswerInvalid",
    "AnswerTooLarge",
    "ChecksumMismatch",
    "ConnectionFailed",
    "DeadlineExceeded",
    "DraftMayExist",
    "Gone",
    "InvalidArgument",
    "NotAuthenticated",
    "NotFound",
    "NotPermitted",
    "QuotaExceeded",
    "RedirectRefused",
    "RequestRefused",
    "ResearchClient",
    "ResearchError",
    "ServiceUnavailable",
    "TLSFailed",
]
__version__ = "0.1.0"
