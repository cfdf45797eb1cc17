from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from .errors import AnswerInvalid

_LONGEST_INTEGER = 40


def parse_object(body: bytes) -> dict[str, Any]:
    """Parses an unambiguous JSON object: valid UTF-8, no duplicate keys, no NaN. Raises AnswerInvalid."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except UnicodeDecodeError:
        problem = "it is not valid UTF-8"
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        # Our own messages contain no text of the response.
        problem = str(error) if isinstance(error, _Ambiguous) else "it is not JSON"
    else:
        if isinstance(value, dict):
            return value
        problem = "it is not an object"
    raise AnswerInvalid(f"The response is invalid: {problem}.")


class _Ambiguous(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Ambiguous("an object has the same key twice")
    return value


def _constant(_: str) -> NoReturn:
    raise _Ambiguous("a number is not finite")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Ambiguous("a number is not finite")
    return value


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise _Ambiguous(f"an integer has more than {_LONGEST_INTEGER} digits")
    return int(text)
