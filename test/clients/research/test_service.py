"""The research client against `tapline studies --dev`."""

from __future__ import annotations

import os
import socket
import ssl
import unittest
import uuid
from typing import Any
from urllib.parse import urlsplit

from agent_research import (
    DeadlineExceeded,
    DraftMayExist,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    RequestRefused,
    ResearchClient,
)
from hostile import Hostile, Peer

URL = os.environ["TAPLINE_TEST_STUDIES"]
CERTIFICATE = os.environ["TAPLINE_TEST_CERTIFICATE"]
TOKENS = {name: os.environ[f"TAPLINE_TEST_TOKEN_{name}"] for name in ("ADA", "BEN", "READER", "SPENT")}


def package(**change: Any) -> dict[str, Any]:
    entry = {"id": str(uuid.uuid4()), "kind": "note", "title": "Ünïcode 😀 \u202e", "note": "x" * 1000}
    return {
        "schemaVersion": 1,
        "title": "A draft of Python's",
        "question": "Does it arrive?",
        "hypothesis": "",
        "method": "Saved and read again.",
        "finding": "",
        "limitations": "One machine.",
        "license": "CC0-1.0",
        "model": {"name": "demo", "revision": None, "runtime": "tapline"},
        "omissions": [],
        "entries": [entry],
        **change,
    }


class TestService(unittest.TestCase):
    def setUp(self) -> None:
        self.clients = {
            name: ResearchClient(URL, token, ca_file=CERTIFICATE) for name, token in TOKENS.items()
        }
        self.ada = self.clients["ADA"]

    def test_list_and_get(self) -> None:
        page = self.ada.list_studies()
        self.assertGreater(page["total"], 2)
        self.assertEqual((page["limit"], page["offset"]), (20, 0))
        first = self.ada.list_studies(limit=1)
        second = self.ada.list_studies(limit=1, offset=first["next_offset"])
        self.assertEqual(
            [first["items"][0]["id"], second["items"][0]["id"]], [i["id"] for i in page["items"][:2]]
        )
        for item in page["items"]:
            study = self.ada.get_study(item["id"].upper())
            self.assertEqual(study["package"]["title"], item["title"])
            self.assertEqual(study["visibility"], "published")

    def test_query(self) -> None:
        titles = [item["title"] for item in self.ada.list_studies(query="probe tense")["items"]]
        self.assertEqual(len(titles), 1)
        self.assertIn("tense", titles[0])
        self.assertEqual(self.ada.list_studies(query="no such words & q=x")["items"], [])

    def test_a_draft_comes_back_as_it_was_saved_and_only_to_its_token(self) -> None:
        saved = package()
        draft = self.ada.save_private_draft(saved)
        self.assertTrue(draft["review_url"].startswith(URL + "/"))
        study = self.ada.get_study(uuid.UUID(draft["id"]))
        self.assertEqual(study["package"], saved)
        self.assertEqual((study["visibility"], study["version"]), ("private_draft", 0))
        with self.assertRaises(NotFound):
            self.clients["BEN"].get_study(draft["id"])

    def test_the_same_key_gives_the_same_draft(self) -> None:
        ben, saved = self.clients["BEN"], package(title="\ud800 half a pair")
        first = ben.save_private_draft(saved, idempotency_key="once")
        self.assertEqual(ben.save_private_draft(saved, idempotency_key="once")["id"], first["id"])
        self.assertNotEqual(ben.save_private_draft(saved)["id"], first["id"])
        self.assertEqual(ben.get_study(first["id"])["package"]["title"], saved["title"])

    def test_after_a_timeout_the_key_leads_to_the_draft(self) -> None:
        lost: list[bytes] = []
        real = ssl.create_default_context(cafile=CERTIFICATE)

        def keeps_the_answer(peer: Peer, request: bytes) -> None:
            """Passes the request on to the service, and nothing back."""
            address = ("127.0.0.1", urlsplit(URL).port)
            with (
                socket.create_connection(address) as raw,
                real.wrap_socket(raw, server_hostname="localhost") as tls,
            ):
                tls.sendall(request)
                while part := tls.recv(65536):
                    lost.append(part)
            peer.wait()

        saved, token = package(), TOKENS["BEN"]
        with Hostile(keeps_the_answer, (CERTIFICATE, os.environ["TAPLINE_TEST_KEY"])) as between:
            # Longer each time, until the machine has taken the request to the service and back within it.
            for timeout in (2**doubled for doubled in range(1, 9)):
                hasty = ResearchClient(between.url, token, ca_file=CERTIFICATE, timeout=timeout)
                try:
                    hasty.save_private_draft(saved)
                except DraftMayExist as error:
                    caught = error
                except DeadlineExceeded:
                    continue
                if lost:
                    break
        draft = self.clients["BEN"].save_private_draft(
            saved, idempotency_key=caught.idempotency_key
        )
        self.assertIn(draft["id"].encode(), b"".join(lost))

    def test_refusals(self) -> None:
        with self.assertRaises(RequestRefused) as refused:
            self.ada.save_private_draft(package(title=""))
        self.assertEqual((refused.exception.status, refused.exception.field), (400, "/title"))
        self.assertIsNotNone(refused.exception.request_id)
        with self.assertRaises(RequestRefused) as refused:
            self.ada.list_studies(limit=51)
        self.assertEqual((refused.exception.code, refused.exception.field), ("invalid_parameter", "limit"))
        with self.assertRaises(NotFound):
            self.ada.get_study(str(uuid.uuid4()))
        with self.assertRaises(NotPermitted) as denied:
            self.clients["READER"].save_private_draft(package())
        self.assertEqual(denied.exception.code, "scope_missing")
        stranger = ResearchClient(URL, "tpl_" + "x" * 49, ca_file=CERTIFICATE)
        # The second is refused while it is still being sent.
        for call in (stranger.list_studies, lambda: stranger.save_private_draft({"finding": "x" * 900_000})):
            with self.assertRaises(NotAuthenticated) as unknown:
                call()
            self.assertEqual(unknown.exception.code, "token_invalid")

    def test_the_quota_says_how_long_to_wait(self) -> None:
        with self.assertRaises(QuotaExceeded) as spent:
            for _ in range(1000):
                self.clients["SPENT"].list_studies(limit=1)
        wait = spent.exception.retry_after
        self.assertTrue(wait is not None and 1 <= wait <= 60, wait)
        self.assertIn(f"Wait {wait} s.", str(spent.exception))
        self.assertEqual(spent.exception.code, "request_quota")
