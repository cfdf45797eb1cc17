"""Shared code for tests of the research client against a hostile server."""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
import unittest
from collections.abc import Callable
from typing import Any

from agent_research import ResearchClient, ResearchError
from hostile import Hostile, Peer, Script

CERTIFICATE = os.environ["TAPLINE_TEST_CERTIFICATE"]
PAIR = (CERTIFICATE, os.environ["TAPLINE_TEST_KEY"])
TOKEN = "tpl_" + "Secret7" * 7
ID = "123e4567-e89b-42d3-a456-426614174000"
PACKAGE = {"schemaVersion": 1, "title": "t"}
JSON = "Content-Type: application/json"
EMPTY_PAGE = b'{"items": []}'
LONG = 300.0
"""Seconds that no call of these tests comes near, however busy the machine."""


def study(**change: Any) -> bytes:
    return json.dumps({"id": ID, "package": {}, **change}).encode()


def with_checksum(body: bytes) -> tuple[str, ...]:
    return (JSON, f"X-Content-SHA256: {hashlib.sha256(body).hexdigest()}")


def sends(data: bytes) -> Script:
    return lambda peer, _: peer.send(data)


def then_drips(head: bytes, rest: bytes, seconds: float = 0.02) -> Script:
    """Sends something at once, and the rest a byte at a time."""

    def script(peer: Peer, _: bytes) -> None:
        peer.send(head)
        peer.drip(rest, seconds)

    return script


class AttackCase(unittest.TestCase):
    """Calls of the client that must end in an error: the right one, in time, and without the token."""

    def client(self, server: Hostile, **options: Any) -> ResearchClient:
        return ResearchClient(server.url, TOKEN, **{"ca_file": CERTIFICATE, "timeout": 120, **options})

    def fails(self, kind: type[ResearchError], call: Callable[[], object]) -> Any:
        """Calls and expects an error of exactly this kind, in time, that shows the token nowhere."""
        started = time.monotonic()
        try:
            call()
        except ResearchError as error:
            shown = traceback.TracebackException.from_exception(error, capture_locals=True)
            text = "".join(shown.format()) + repr(error) + str(vars(error))
            self.assertFalse(TOKEN in text or TOKEN[4:40] in text, f"{kind.__name__} shows the token")
            self.assertIs(type(error), kind, str(error))
            self.assertLess(time.monotonic() - started, LONG)
            return error
        self.fail(f"{kind.__name__} was not raised")

    def no_read(self, kind: type[ResearchError], script: Script, timeout: float = 120) -> tuple[Any, Hostile]:
        return self._attack(kind, script, timeout, lambda client: client.get_study(ID))

    def no_write(self, kind: type[ResearchError], script: Script, timeout: float = 120) -> Any:
        error, server = self._attack(
            kind, script, timeout, lambda client: client.save_private_draft(PACKAGE)
        )
        self.assertEqual(server.connections, 1, "a write is never repeated")
        return error

    def _attack(
        self,
        kind: type[ResearchError],
        script: Script,
        timeout: float,
        call: Callable[[ResearchClient], object],
    ) -> tuple[Any, Hostile]:
        """With twice the time where the machine was too busy for the request to arrive at all."""
        with Hostile(script, PAIR) as server:
            client = self.client(server, timeout=timeout)
            if timeout >= 120:
                return self.fails(kind, lambda: call(client)), server
            try:
                return self.fails(kind, lambda: call(client)), server
            except AssertionError:
                if server.requests:
                    raise
        return self._attack(kind, script, 2 * timeout, call)
