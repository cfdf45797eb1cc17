from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime

from ._json import parse_object
from ._token import Token
from ._transport import Answer
from .errors import (
    AnswerInvalid,
    Gone,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    Refusal,
    RequestRefused,
    ServiceUnavailable,
)

_CLASSES: dict[int, type[Refusal]] = {
    401: NotAuthenticated,
    403: NotPermitted,
    404: NotFound,
    410: Gone,
    429: QuotaExceeded,
}
_SENTENCES = {
    400: "The request is invalid.",
    401: "The token is missing, invalid, expired or revoked.",
    403: "The token lacks permission for this.",
    404: "No such study, or this token may not read it.",
    410: "This is no longer available.",
    429: "The quota is exhausted.",
}
_LONGEST_SENTENCE = 500
_LONGEST_REASON = 1000


def refusal(answer: Answer, token: Token) -> Refusal:
    """Returns the error for an unsuccessful response, with details if its body is the service's JSON."""
    status = answer.status
    kind = _CLASSES.get(status, ServiceUnavailable if status >= 500 else RequestRefused)
    fields = _fields(answer)
    own = fields.get("error")
    sentence = _quoted(own, token) if own else _SENTENCES.get(status, "The service is unavailable.")
    wait = _retry_after(answer) if status in (429, 503) else None
    if wait is not None:
        sentence += f" Wait {wait} s."
    elif status == 429:
        sentence += " The service did not say how long to wait."
    reason = _quoted(fields["reason"], token, _LONGEST_REASON) if fields.get("reason") else None
    if reason is not None:
        sentence += f" Reason: {reason}"
    code, field, request_id = (fields.get(name) for name in ("code", "field", "request_id"))
    return kind(
        f"{sentence} ({status})",
        status=status,
        code=code if code and re.fullmatch(r"[a-z_]{1,64}", code) else None,
        field=None if field is None else _quoted(field, token),
        reason=reason,
        request_id=request_id if request_id and re.fullmatch(r"[0-9a-fA-F-]{36}", request_id) else None,
        retry_after=wait,
    )


def _fields(answer: Answer) -> dict[str, str]:
    try:
        fields = parse_object(answer.body)
    except AnswerInvalid:
        return {}
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def _quoted(text: str, token: Token, most: int = _LONGEST_SENTENCE) -> str:
    """The service's text without the token, with invisible and direction-changing characters escaped."""
    shown = token.hidden_in(text)
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown[: most + 1])
    return shown if len(shown) <= most else shown[:most] + "…"


def _retry_after(answer: Answer) -> int | None:
    """Retry-After in whole seconds; a date is relative to now, rounded up."""
    try:
        value = answer.single("Retry-After")
    except AnswerInvalid:
        return None
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    try:
        return max(0, math.ceil(parsedate_to_datetime(value).timestamp() - time.time()))
    except (ValueError, TypeError, OverflowError):
        return None
