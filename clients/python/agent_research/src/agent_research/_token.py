from __future__ import annotations

import re
from typing import NoReturn

from .errors import InvalidArgument


class Token:
    """A secret that repr(), vars() and pickle do not reveal."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        # Checked here because http.client would quote an invalid header in its error.
        if re.fullmatch(r"[\x21-\x7e]{1,1000}", value) is None:
            raise InvalidArgument("The token must be visible ASCII without spaces.")
        self._value = value

    def __repr__(self) -> str:
        return "<token>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Tokens cannot be pickled.")

    def authorization(self) -> str:
        return f"Bearer {self._value}"

    def hidden_in(self, text: str) -> str:
        """Returns the text without the token, since a service could quote it in an error."""
        return text.replace(self._value, "<token>")
