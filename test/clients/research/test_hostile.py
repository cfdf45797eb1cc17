"""The research client against a hostile server: everything ends in one of its errors, none with the token in it."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import socket
import threading
import time
import traceback
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

from agent_research import (
    AnswerInvalid,
    AnswerTooLarge,
    ChecksumMismatch,
    ConnectionFailed,
    DeadlineExceeded,
    DraftMayExist,
    InvalidArgument,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    RedirectRefused,
    RequestRefused,
    ResearchClient,
    ResearchError,
    ServiceUnavailable,
    TLSFailed,
)
from hostile import Hostile, Peer, Script, answer

CERTIFICATE = os.environ["TAPLINE_TEST_CERTIFICATE"]
OTHER_CERTIFICATE = os.environ["TAPLINE_TEST_OTHER_CERTIFICATE"]
PAIR = (CERTIFICATE, os.environ["TAPLINE_TEST_KEY"])
TOKEN = "tpl_" + "Secret7" * 7
ID = "123e4567-e89b-42d3-a456-426614174000"
PACKAGE = {"schemaVersion": 1, "title": "t"}
JSON = "Content-Type: application/json"
EMPTY_PAGE = b'{"items": []}'
LONG = 20.0
"""Seconds that no call of these tests comes near, however busy the machine."""


def study(**change: Any) -> bytes:
    return json.dumps({"id": ID, "package": {}, **change}).encode()


def with_checksum(body: bytes) -> tuple[str, ...]:
    return (JSON, f"X-Content-SHA256: {hashlib.sha256(body).hexdigest()}")


def sends(data: bytes) -> Script:
    return lambda peer, _: peer.send(data)


class TestCase(unittest.TestCase):
    def client(self, server: Hostile, **options: Any) -> ResearchClient:
        return ResearchClient(server.url, TOKEN, **{"ca_file": CERTIFICATE, "timeout": 10, **options})

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

    def no_read(self, kind: type[ResearchError], script: Script, **options: Any) -> tuple[Any, Hostile]:
        with Hostile(script, PAIR) as server:
            error = self.fails(kind, lambda: self.client(server, **options).get_study(ID))
        return error, server

    def no_write(self, kind: type[ResearchError], script: Script, **options: Any) -> Any:
        with Hostile(script, PAIR) as server:
            error = self.fails(kind, lambda: self.client(server, **options).save_private_draft(PACKAGE))
        self.assertEqual(server.connections, 1, "a write is never repeated")
        return error


class TestRedirects(TestCase):
    def test_redirects_raise_before_a_second_request(self) -> None:
        with Hostile(sends(answer(body=EMPTY_PAGE)), PAIR) as other, Hostile(sends(b""), None) as plain:
            places = [f"{other.url}/api", f"http://localhost:{plain.port}/", "/api/v1/studies", "//localhost", ""]
            for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent", "300 Many"):
                for place in places:
                    with self.subTest(status=status, place=place):
                        script = sends(answer(status, b"", (f"Location: {place}",)))
                        error, server = self.no_read(RedirectRefused, script)
                        self.assertEqual(len(server.requests), 1)
                        self.assertEqual(error.status, int(status[:3]))
            self.no_write(RedirectRefused, sends(answer("307 Temporary", b"", (f"Location: {other.url}",))))
        self.assertEqual((other.connections, plain.connections), (0, 0))


class TestDeadline(TestCase):
    def test_a_slow_drip_hits_the_total_deadline(self) -> None:
        body = b" " * 100_000
        drips: dict[str, Script] = {
            "of the body": lambda peer, _: (peer.send(answer(body=body)[:200]), peer.drip(body)) and None,
            "of headers": lambda peer, _: (peer.send(b"HTTP/1.1 200 OK\r\n"), peer.drip(b"X-A: b\r\n" * 999)) and None,
            "of one header": lambda peer, _: (peer.send(b"HTTP/1.1 200 OK\r\nA: "), peer.drip(body)) and None,
            "of the status": lambda peer, _: peer.drip(b"HTTP/1.1 " + body),
            "of interim answers": lambda peer, _: peer.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 999, 0.001),
            "of chunks": lambda peer, _: (
                peer.send(answer(headers=(JSON, "Transfer-Encoding: chunked"), length=False)),
                peer.drip(b"1\r\na\r\n" * 9999),
            )
            and None,
            "of nothing": lambda peer, _: peer.wait(),
        }
        for name, script in drips.items():
            with self.subTest(name):
                self.no_read(DeadlineExceeded, script, timeout=0.7)
                self.no_write(DraftMayExist, script, timeout=0.7)

    def test_a_handshake_that_nobody_answers(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://localhost:{silent.getsockname()[1]}"
            client = ResearchClient(url, TOKEN, ca_file=CERTIFICATE, timeout=0.5)
            self.fails(DeadlineExceeded, lambda: client.get_study(ID))
            # Nothing of the package has left this machine, so there is no draft.
            self.fails(DeadlineExceeded, lambda: client.save_private_draft(PACKAGE))

    def test_a_save_that_times_out_says_that_the_draft_may_exist(self) -> None:
        error = self.no_write(DraftMayExist, lambda peer, _: peer.wait(), timeout=0.5)
        self.assertIn("The draft may exist", str(error))
        self.assertIn(error.idempotency_key, str(error))

    def test_a_refusal_whose_body_drips_is_the_refusal(self) -> None:
        def script(peer: Peer, _: bytes) -> None:
            peer.send(b"HTTP/1.1 401 No\r\nContent-Length: 9999\r\n\r\n")
            peer.drip(b" " * 9999)

        error, _ = self.no_read(NotAuthenticated, script, timeout=0.7)
        self.assertEqual(error.status, 401)


class TestSize(TestCase):
    def test_ten_gigabytes_are_refused(self) -> None:
        size = 10 * 1024**3
        block = b" " * (1 << 20)

        def flood(head: bytes, block: bytes = block) -> Script:
            def script(peer: Peer, _: bytes) -> None:
                peer.send(head)
                for _index in range(size // len(block)):
                    peer.send(block)

            return script

        chunked = answer(headers=(JSON, "Transfer-Encoding: chunked"), length=False)
        framed = b"100000\r\n" + block + b"\r\n"
        floods = {
            "announced": flood(answer(headers=(JSON, f"Content-Length: {size}"), length=False)),
            "until the end of the connection": flood(answer(length=False)),
            "in chunks": flood(chunked, framed),
            "in one chunk": flood(chunked + b"280000000\r\n"),
            "in a chunk of negative size": flood(chunked + b"-1\r\n"),
            "in one header": flood(b"HTTP/1.1 200 OK\r\nA: "),
            "in headers": flood(b"HTTP/1.1 200 OK\r\n", b"A: " + b"b" * 60_000 + b"\r\n"),
            "in interim answers": flood(b"", b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" * 9999),
            "in trailers": flood(chunked + b"2\r\n{}\r\n0\r\n", b"A: " + b"b" * 9000 + b"\r\n"),
            "in a refusal": flood(answer("400 No", headers=("A: b",), length=False)),
        }
        # What http.client itself gives up on is not an answer in HTTP; the rest is too large.
        kinds = {
            "in one header": AnswerInvalid,
            "in headers": AnswerInvalid,
            "in a refusal": RequestRefused,
        }
        for name, script in floods.items():
            with self.subTest(name):
                _, server = self.no_read(kinds.get(name, AnswerTooLarge), script)
                # Counted as it is sent: what the client has not read is in buffers of the system.
                self.assertLess(server.sent, 100 * 1024**2)
                self.assertEqual(server.connections, 1)

    def test_the_limit_is_exact(self) -> None:
        padding = b" " * (5000 - len(study()))
        body = study() + padding
        with Hostile(sends(answer(body=body, headers=with_checksum(body))), PAIR) as server:
            self.assertEqual(self.client(server, max_bytes=5000).get_study(ID)["id"], ID)
            self.fails(AnswerTooLarge, lambda: self.client(server, max_bytes=4999).get_study(ID))

    def test_compressed_answers_are_refused(self) -> None:
        self.no_read(AnswerInvalid, sends(answer(body=b"x", headers=(JSON, "Content-Encoding: gzip"))))


class TestContent(TestCase):
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
        with Hostile(sends(answer(body=EMPTY_PAGE, headers=(JSON, f"X-Content-SHA256: {good}"))), PAIR) as server:
            self.fails(ChecksumMismatch, lambda: self.client(server).list_studies())

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
            "another study": study(id=ID.replace("1", "2")),
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
        for length in ("-1", "1e3", "+5", "٣", ""):
            data = answer(body=study(), headers=(checksum, JSON, f"Content-Length: {length}".encode().decode("latin-1")))
            with self.subTest(length):
                self.no_read(AnswerInvalid, sends(data.replace(f"Content-Length: {len(study())}\r\n".encode(), b"")))
        both = (checksum, JSON, "Transfer-Encoding: chunked")
        self.no_read(AnswerInvalid, sends(answer(body=study(), headers=both)))

    def test_what_is_not_http(self) -> None:
        for data in (b"SSH-2.0-x\r\n", b"\x00" * 99 + b"\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n"):
            with self.subTest(data[:10]):
                self.no_read(AnswerInvalid, sends(data))

    def test_answers_that_are_no_list(self) -> None:
        for body in (b"{}", b'{"items": {}}', b'{"items": [1]}', b'{"items": null}'):
            with Hostile(sends(answer(body=body)), PAIR) as server:
                self.fails(AnswerInvalid, lambda: self.client(server).list_studies())

    def test_another_success_than_the_documented_one(self) -> None:
        for status, body in (("201 Created", b"{}"), ("202 Accepted", b"{}"), ("204 No Content", b"")):
            self.no_read(AnswerInvalid, sends(answer(status, body)))


class TestRefusals(TestCase):
    def test_each_status_has_its_error(self) -> None:
        kinds = {
            "400 a": RequestRefused,
            "401 b": NotAuthenticated,
            "403 c": NotPermitted,
            "404 d": NotFound,
            "405 e": RequestRefused,
            "429 f": QuotaExceeded,
        }
        body = json.dumps({"error": "A sentence.", "code": "some_code", "field": "/title", "request_id": ID}).encode()
        for status, kind in kinds.items():
            for call in (self.no_write, lambda *a: self.no_read(*a)[0]):
                with self.subTest(status):
                    error = call(kind, sends(answer(status, body)))
                    self.assertEqual(error.status, int(status[:3]))
                    self.assertIn("A sentence.", str(error))
                    self.assertEqual((error.code, error.field, error.request_id), ("some_code", "/title", ID))

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
        for headers in ((), ("Retry-After: soon",), ("Retry-After: 1", "Retry-After: 2"), ("Retry-After: -1",)):
            error, _ = self.no_read(QuotaExceeded, sends(answer("429 x", b"", headers)))
            self.assertIsNone(error.retry_after)
            self.assertIn("does not say", str(error))

    def test_pages_of_errors_are_not_quoted(self) -> None:
        page = b"<html><h1>Internal <b>error</b></h1>"
        for status, kind in (("403 x", NotPermitted), ("404 x", NotFound), ("500 x", ServiceUnavailable)):
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


class TestRepeating(TestCase):
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
        error, server = self.no_read(ServiceUnavailable, sends(answer("503 x", b"", ("Retry-After: 60",))))
        self.assertEqual((error.retry_after, len(server.requests)), (60, 1))

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


class TestTLS(TestCase):
    def test_certificates_that_prove_nothing(self) -> None:
        with Hostile(sends(answer(body=EMPTY_PAGE)), PAIR) as server:
            with mock.patch.dict(os.environ):
                os.environ.pop("AGENT_RESEARCH_CA_FILE", None)
                unknown = ResearchClient(server.url, TOKEN, timeout=10)
                self.fails(TLSFailed, unknown.list_studies)
            other = self.client(server, ca_file=OTHER_CERTIFICATE)
            self.fails(TLSFailed, other.list_studies)
            self.fails(TLSFailed, lambda: other.save_private_draft(PACKAGE))
            addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
            with mock.patch("socket.getaddrinfo", return_value=addresses):
                named = ResearchClient("https://studies.example", TOKEN, ca_file=CERTIFICATE)
                error = self.fails(TLSFailed, named.list_studies)
            self.assertRegex(str(error), "(?i)hostname mismatch")
            self.assertEqual(server.requests, [])
            self.assertEqual(self.client(server).list_studies(), {"items": []})

    def test_a_server_without_tls_sees_no_token(self) -> None:
        seen: list[bytes] = []
        with socket.create_server(("127.0.0.1", 0)) as plain:
            client = ResearchClient(f"https://localhost:{plain.getsockname()[1]}", TOKEN, timeout=10)

            def talk() -> None:
                connection, _ = plain.accept()
                with connection:
                    seen.append(connection.recv(65536))
                    connection.sendall(answer(body=EMPTY_PAGE))

            thread = threading.Thread(target=talk)
            thread.start()
            self.fails(TLSFailed, client.list_studies)
            thread.join()
        self.assertNotIn(b"Authorization", seen[0])

    def test_what_a_request_carries(self) -> None:
        with Hostile(sends(answer(body=EMPTY_PAGE)), PAIR) as server:
            proxies = {"https_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"}
            with mock.patch.dict(os.environ, proxies):
                self.client(server).list_studies(query="a b&c=é", limit=5, offset=10)
        lines = server.requests[0].decode().split("\r\n")
        self.assertEqual(lines[0], "GET /api/v1/studies?q=a+b%26c%3D%C3%A9&limit=5&offset=10 HTTP/1.1")
        self.assertIn(f"Authorization: Bearer {TOKEN}", lines)
        names = {line.split(":")[0].lower() for line in lines[1:] if line}
        self.assertEqual(
            names, {"host", "authorization", "accept", "accept-encoding", "connection", "user-agent"}
        )


class TestArguments(unittest.TestCase):
    def test_addresses_that_are_refused(self) -> None:
        for url in (
            "",
            "http://studies.example",
            "HTTP://studies.example",
            "studies.example",
            "ftp://studies.example",
            "https://",
            "https:///api",
            "https://user:hush@studies.example",
            "https://studies.example?hush=1",
            "https://studies.example#hush",
            "https://studies.example:99999",
            "https://studies.example\r\nX: hush",
            "file:///etc/passwd",
            "https://[::1",
        ):
            with self.subTest(url), self.assertRaises(InvalidArgument) as caught:
                ResearchClient(url, TOKEN)
            self.assertNotIn("hush", str(caught.exception))

    def test_the_environment(self) -> None:
        variables = {"AGENT_RESEARCH_URL": "https://[::1]:8990/x/", "AGENT_RESEARCH_TOKEN": f" {TOKEN}\n"}
        with mock.patch.dict(os.environ, variables):
            os.environ.pop("AGENT_RESEARCH_CA_FILE", None)
            client = ResearchClient()
            self.assertEqual(repr(client), "ResearchClient('https://[::1]:8990/x')")
            with mock.patch.dict(os.environ, {"AGENT_RESEARCH_CA_FILE": "/nowhere"}):
                with self.assertRaisesRegex(InvalidArgument, "/nowhere"):
                    ResearchClient()
            for name in variables:
                with mock.patch.dict(os.environ):
                    del os.environ[name]
                    with self.assertRaisesRegex(InvalidArgument, name):
                        ResearchClient()

    def test_the_token_is_nowhere_to_be_seen(self) -> None:
        client = ResearchClient("https://studies.example", TOKEN)
        self.assertNotIn(TOKEN, repr(client) + str(client) + str(vars(client)) + str(vars(client._transport)))
        with self.assertRaises(TypeError):
            pickle.dumps(client)
        for token in ("two words", "line\nbreak", "tpl_é", "x" * 9999):
            with self.assertRaises(InvalidArgument) as caught:
                ResearchClient("https://studies.example", token)
            self.assertNotIn(token, str(caught.exception))

    def test_arguments_that_would_reach_another_address(self) -> None:
        client = ResearchClient("https://127.0.0.1:9", TOKEN)
        for name in ("", "..", "../../x", f"{ID}/discussion", f"{ID}?x", f"{ID}\n", "x" * 36):
            with self.assertRaises(InvalidArgument):
                client.get_study(name)
        for key in ("a b", "a\nb", "x" * 201):
            with self.assertRaises(InvalidArgument):
                client.save_private_draft(PACKAGE, idempotency_key=key)

    def test_packages_that_are_not_sent(self) -> None:
        client = ResearchClient("https://127.0.0.1:9", TOKEN)
        with self.assertRaisesRegex(InvalidArgument, "1000020 bytes; at most 1000000"):
            client.save_private_draft({"finding": "é" * 500_003})
        for package in ({"a": float("nan")}, {"a": object()}, {"a": b"x"}):
            with self.assertRaises(InvalidArgument):
                client.save_private_draft(package)
        for timeout in (0, -1, float("inf"), float("nan")):
            with self.assertRaises(InvalidArgument):
                ResearchClient("https://127.0.0.1:9", TOKEN, timeout=timeout)
