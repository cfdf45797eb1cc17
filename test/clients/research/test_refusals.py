"""Refusals of the service, retries, and writes with an unknown outcome."""

from __future__ import annotations

import json
import time
from unittest import mock

from agent_research import (
    ConnectionFailed,
    DraftMayExist,
    NotAuthenticated,
    Gone,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    RequestRefused,
    ServiceUnavailable,
)
from attack import ID, JSON, LONG, PACKAGE, PAIR, TOKEN, AttackCase, sends, study, with_checksum
from hostile import Hostile, Script, answer


class TestRefusals(AttackCase):
    def test_each_status_has_its_error(self) -> None:
        kinds = {
            "400 a": RequestRefused,
            "401 b": NotAuthenticated,
            "403 c": NotPermitted,
            "404 d": NotFound,
            "405 e": RequestRefused,
            "410 g": Gone,
            "429 f": QuotaExceeded,
        }
        body = json.dumps(
            {"error": "A sentence.", "code": "some_code", "field": "/title", "request_id": ID}
        ).encode()
        for status, kind in kinds.items():
            for call in (self.no_write, lambda *a: self.no_read(*a)[0]):
                with self.subTest(status):
                    error = call(kind, sends(answer(status, body)))
                    self.assertEqual(error.status, int(status[:3]))
                    self.assertIn("A sentence.", str(error))
                    self.assertEqual((error.code, error.field, error.request_id), ("some_code", "/title", ID))

    def test_what_was_taken_down_says_why(self) -> None:
        body = json.dumps(
            {
                "error": "This was withdrawn.",
                "code": "withdrawn",
                "field": "id",
                "reason": "A name\u202e was in it.",
                "request_id": ID,
            }
        ).encode()
        error, _ = self.no_read(Gone, sends(answer("410 x", body)))
        self.assertEqual((error.status, error.code), (410, "withdrawn"))
        self.assertEqual(error.reason, "A name\\u202e was in it.")
        self.assertIn("Reason: A name", str(error))
        error, _ = self.no_read(Gone, sends(answer("410 x", b"")))
        self.assertIsNone(error.reason)

    def test_the_wait_of_429_is_exact(self) -> None:
        for header, wait in (("37", 37), ("0", 0), ("86399", 86399)):
            error, server = self.no_read(
                QuotaExceeded, sends(answer("429 x", b"{}", (JSON, f"Retry-After: {header}")))
            )
            self.assertEqual(error.retry_after, wait)
            self.assertIn(f"Wait {wait} s.", str(error))
            self.assertEqual(len(server.requests), 1)
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 5000))
        error, _ = self.no_read(QuotaExceeded, sends(answer("429 x", b"", (f"Retry-After: {date}",))))
        self.assertTrue(5000 - LONG < error.retry_after <= 5000)
        for headers in (
            (),
            ("Retry-After: soon",),
            ("Retry-After: 1", "Retry-After: 2"),
            ("Retry-After: -1",),
        ):
            error, _ = self.no_read(QuotaExceeded, sends(answer("429 x", b"", headers)))
            self.assertIsNone(error.retry_after)
            self.assertIn("did not say how long to wait", str(error))

    def test_pages_of_errors_are_not_quoted(self) -> None:
        page = b"<html><h1>Internal <b>error</b></h1>"
        for status, kind in (("403 x", NotPermitted), ("404 x", NotFound), ("500 x", ServiceUnavailable)):
            with mock.patch("agent_research._client.time.sleep"):
                error, _ = self.no_read(kind, sends(answer(status, page, ("Content-Type: text/html",))))
            self.assertNotIn("html", str(error))
            self.assertRegex(str(error), f"^[A-Z].*({status[:3]})")

    def test_the_service_s_text_is_shown_harmless(self) -> None:
        text = f"evil\x1b[2J \u202etxt\u200b {TOKEN} \ud800" + "x" * 9999
        body = json.dumps({"error": text, "code": "No Code", "field": text, "request_id": text}).encode()
        error, _ = self.no_read(RequestRefused, sends(answer("400 x", body)))
        for shown in (str(error), error.field):
            self.assertTrue(shown.isprintable(), shown)
            self.assertLess(len(shown), 700)
            self.assertIn("\\u202e", shown)
            self.assertIn("<token>", shown)
        self.assertEqual((error.code, error.request_id), (None, None))


class TestRepeating(AttackCase):
    def test_reads_are_repeated_twice_when_the_connection_breaks(self) -> None:
        with mock.patch("agent_research._client.time.sleep") as sleep:
            _, server = self.no_read(ConnectionFailed, lambda *_: None)
        self.assertEqual(len(server.requests), 3)
        self.assertEqual(sleep.call_count, 2)
        checked = answer(body=study(), headers=with_checksum(study()))
        answers = [answer("503 x", b"", ("Retry-After: 2",)), checked[:-5], checked]
        with mock.patch("agent_research._client.time.sleep") as sleep:
            with Hostile(lambda peer, _: peer.send(answers.pop(0)), PAIR) as server:
                self.assertEqual(self.client(server).get_study(ID)["id"], ID)
        self.assertEqual(sleep.call_args_list[0], mock.call(2))

    def test_a_wait_beyond_the_deadline_is_the_caller_s(self) -> None:
        error, server = self.no_read(ServiceUnavailable, sends(answer("503 x", b"", ("Retry-After: 600",))))
        self.assertEqual((error.retry_after, len(server.requests)), (600, 1))

    def test_writes_whose_outcome_is_not_known(self) -> None:
        created = json.dumps({"id": ID, "review_url": "https://x.example/1"}).encode()
        scripts: dict[str, Script] = {
            "hangs up": lambda *_: None,
            "half an answer": sends(answer("201 Created", created)[:-3]),
            "a fault": sends(answer("500 x", b"{}")),
            "a gateway": sends(answer("502 x", b"<html>", ("Content-Type: text/html",))),
            "unavailable": sends(answer("503 x", b'{"code": "unavailable"}', (JSON, "Retry-After: 1"))),
            "another success": sends(answer("200 OK", created)),
            "no JSON": sends(answer("201 Created", b"<html>")),
            "HTML": sends(answer("201 Created", created, ("Content-Type: text/html",))),
            "wrong checksum": sends(answer("201 Created", created, (JSON, f"X-Content-SHA256: {'0' * 64}"))),
            "no id": sends(answer("201 Created", b'{"review_url": "https://x.example/1"}')),
            "no URL": sends(answer("201 Created", json.dumps({"id": ID}).encode())),
            "a script": sends(answer("201 Created", created.replace(b"https:", b"javascript:"))),
            "ten gigabytes": sends(answer("201 Created", b"", (JSON, "Content-Length: 10000000000"), False)),
            "not HTTP": sends(b"\x00\x00\r\n"),
        }
        for name, script in scripts.items():
            with self.subTest(name):
                error = self.no_write(DraftMayExist, script)
                self.assertIn("may exist", str(error))

    def test_a_write_that_was_refused_for_good_has_made_no_draft(self) -> None:
        disabled = answer("503 x", b'{"error": "Off.", "code": "disabled"}', (JSON, "Retry-After: 60"))
        self.assertEqual(self.no_write(ServiceUnavailable, sends(disabled)).retry_after, 60)
        with Hostile(sends(b""), PAIR) as server:
            pass
        self.fails(ConnectionFailed, lambda: self.client(server).save_private_draft(PACKAGE))
