"""Answers that are not what they should be."""

from __future__ import annotations

import hashlib

from agent_research import AnswerInvalid, ChecksumMismatch
from attack import EMPTY_PAGE, ID, JSON, PAIR, AttackCase, sends, study, with_checksum
from hostile import Hostile, answer


class TestContent(AttackCase):
    def test_the_checksum_is_verified(self) -> None:
        good = hashlib.sha256(study()).hexdigest()
        wrong: list[tuple[str, ...]] = [
            (JSON, f"X-Content-SHA256: {'0' * 64}"),
            (JSON, f"X-Content-SHA256: {good.upper()}"),
            (JSON, f"X-Content-SHA256: sha256={good}"),
            (JSON, "X-Content-SHA256:"),
            (JSON,),
        ]
        for headers in wrong:
            with self.subTest(headers):
                _, server = self.no_read(ChecksumMismatch, sends(answer(body=study(), headers=headers)))
                self.assertEqual(len(server.requests), 1)
        changed = answer(body=study()[:-1] + b" }", headers=with_checksum(study()))
        self.no_read(ChecksumMismatch, sends(changed))
        twice = (JSON, *(f"X-Content-SHA256: {value}" for value in (good, good)))
        self.no_read(AnswerInvalid, sends(answer(body=study(), headers=twice)))
        with Hostile(
            sends(answer(body=EMPTY_PAGE, headers=(JSON, f"X-Content-SHA256: {good}"))), PAIR
        ) as server:
            self.fails(ChecksumMismatch, lambda: self.client(server).list_studies())

    def test_a_draft_that_became_a_later_version_is_that_study(self) -> None:
        became = study(id=ID.replace("1", "2"), version=2)
        with Hostile(sends(answer(body=became, headers=with_checksum(became))), PAIR) as server:
            self.assertEqual(self.client(server).get_study(ID)["version"], 2)
            self.assertIn(b"GET /api/v1/studies/", server.requests[0])
        with Hostile(sends(answer(body=became, headers=with_checksum(became))), PAIR) as server:
            self.fails(AnswerInvalid, lambda: self.client(server).get_study(ID, version=2))
            self.assertIn(b"/versions/2 ", server.requests[0])

    def test_bodies_that_cannot_be_read(self) -> None:
        bodies = {
            "bad UTF-8": b'{"id": "\xff"}',
            "a surrogate in UTF-8": b'{"id": "\xed\xa0\x80"}',
            "UTF-16": study().decode().encode("utf-16"),
            "a byte order mark": b"\xef\xbb\xbf" + study(),
            "HTML": b"<!doctype html><title>Sign in</title>",
            "nothing": b"",
            "cut off": study()[:-1],
            "two values": study() + study(),
            "a list": b"[]",
            "null": b"null",
            "NaN": b'{"a": NaN}',
            "infinite": b'{"a": 1e999}',
            "a key twice": b'{"id": 1, "\\u0069d": 2}',
            "deep": b"[" * 200_000,
            "deep objects": b'{"a":' * 100_000,
            "a long integer": b'{"a": ' + b"9" * 100_000 + b"}",
            "different study": study(id=ID.replace("1", "2")),
            "another draft": study(id=ID.replace("1", "2"), version=0),
            "no id": b'{"package": {}}',
            "no package": study(package=None),
        }
        for name, body in bodies.items():
            with self.subTest(name):
                error, _ = self.no_read(AnswerInvalid, sends(answer(body=body, headers=with_checksum(body))))
                self.assertNotIn("Sign in", str(error))

    def test_headers_that_are_missing_double_or_wrong(self) -> None:
        checksum = with_checksum(study())[1]
        headers: list[tuple[str, ...]] = [
            (checksum,),
            (checksum, "Content-Type: text/html"),
            (checksum, "Content-Type: application/jsonx"),
            (checksum, JSON, JSON),
            (checksum, JSON, "Content-Length: 5"),
            (checksum, JSON, "Content-Encoding: identity", "Content-Encoding: identity"),
        ]
        for given in headers:
            with self.subTest(given):
                self.no_read(AnswerInvalid, sends(answer(body=study(), headers=given)))
        for length in ("-1", "1e3", "+5", "٣", "", "9" * 5000):
            data = answer(
                body=study(), headers=(checksum, JSON, f"Content-Length: {length}".encode().decode("latin-1"))
            )
            with self.subTest(length):
                self.no_read(
                    AnswerInvalid, sends(data.replace(f"Content-Length: {len(study())}\r\n".encode(), b""))
                )
        both = (checksum, JSON, "Transfer-Encoding: chunked")
        self.no_read(AnswerInvalid, sends(answer(body=study(), headers=both)))

    def test_what_is_not_http(self) -> None:
        for data in (
            b"SSH-2.0-x\r\n",
            b"\x00" * 99 + b"\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 20 OK\r\n\r\n",
        ):
            with self.subTest(data[:10]):
                self.no_read(AnswerInvalid, sends(data))

    def test_answers_that_are_no_list(self) -> None:
        for body in (b"{}", b'{"items": {}}', b'{"items": [1]}', b'{"items": null}'):
            with Hostile(sends(answer(body=body)), PAIR) as server:
                self.fails(AnswerInvalid, lambda: self.client(server).list_studies())

    def test_another_success_than_the_documented_one(self) -> None:
        for status, body in (("201 Created", b"{}"), ("202 Accepted", b"{}"), ("204 No Content", b"")):
            self.no_read(AnswerInvalid, sends(answer(status, body)))
