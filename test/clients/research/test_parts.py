"""Bounds and choices of the research client, each at its edge. Nothing is sent."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import ssl
import time
import unittest
from email.message import Message
from email.utils import formatdate
from http.client import HTTPMessage
from itertools import count
from typing import Any
from unittest import mock

from agent_research import (
    AnswerInvalid,
    ConnectionFailed,
    DraftMayExist,
    InvalidArgument,
    RedirectRefused,
    RequestRefused,
    ResearchClient,
    ServiceUnavailable,
    TLSFailed,
)
from agent_research import _transport as transport
from agent_research._json import parse_object
from agent_research._refusals import refusal
from agent_research._token import Token
from agent_research._transport import Answer, Failure

ID = "123e4567-e89b-42d3-a456-426614174000"
TOKEN = Token("tpl_secret")


def answer(status: int = 200, body: object = None, **headers: str) -> Answer:
    message = HTTPMessage()
    message["Content-Type"] = "application/json"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, message, data)


def study(**change: Any) -> Answer:
    body = json.dumps({"id": ID, "version": 3, "package": {}, **change}).encode()
    return answer(200, body, X_Content_SHA256=hashlib.sha256(body).hexdigest())


def client(*outcomes: Answer | Failure, **options: Any) -> Any:
    """A client whose requests end like this; its `asked` are their methods, targets, headers and bodies."""
    # The system's authorities take a while to read, and nothing is connected.
    with mock.patch("ssl.create_default_context"):
        made: Any = ResearchClient(**{"base_url": "https://studies.example", "token": "tpl_secret", **options})
    left = list(outcomes)
    made.asked = []

    def exchange(method: str, target: str, **given: Any) -> Answer | Failure:
        made.asked.append((method, target, given["headers"], given["body"]))
        made.given = given
        return left.pop(0)

    made._transport.exchange = exchange
    return made


class TestAddresses(unittest.TestCase):
    def test_what_an_address_is_read_as(self) -> None:
        for url, shown in (
            ("https://a.example", "https://a.example"),
            ("https://a.example/", "https://a.example"),
            ("https://A.example:443/x//", "https://a.example/x"),
            ("https://a.example:8990", "https://a.example:8990"),
            ("https://[::1]:443", "https://[::1]"),
        ):
            self.assertEqual(repr(ResearchClient(url, "t")), f"ResearchClient({shown!r})")
        ports = [client(base_url=f"https://a.example{port}")._transport._port for port in ("", ":443", ":8990")]
        self.assertEqual(ports, [443, 443, 8990])
        made = client(answer(body={"items": []}), base_url="https://a.example/x/")
        made.list_studies()
        self.assertEqual(made.asked[0][:2], ("GET", "/x/api/v1/studies"))

    def test_what_is_given_wins_over_the_environment(self) -> None:
        variables = {"AGENT_RESEARCH_URL": "https://env.example", "AGENT_RESEARCH_TOKEN": "tpl_env", "AGENT_RESEARCH_CA_FILE": ""}
        with mock.patch.dict(os.environ, variables):
            given, taken = ResearchClient("https://a.example", "tpl_given"), ResearchClient()
        self.assertEqual(given._token.authorization(), "Bearer tpl_given")
        self.assertEqual((repr(taken), taken._token.authorization()), ("ResearchClient('https://env.example')", "Bearer tpl_env"))
        self.assertIs(given._transport._context.minimum_version, ssl.TLSVersion.TLSv1_2)
        self.assertTrue(given._transport._context.check_hostname)

    def test_a_given_authority_wins_over_the_environment_s(self) -> None:
        with mock.patch.dict(os.environ, {"AGENT_RESEARCH_CA_FILE": "/env.pem"}):
            for given, taken in (("/given.pem", "/given.pem"), (None, "/env.pem")):
                with mock.patch("ssl.create_default_context") as made:
                    ResearchClient("https://a.example", "t", ca_file=given)
                made.assert_called_once_with(cafile=taken)

    def test_what_is_given_empty_is_not_taken_from_the_environment(self) -> None:
        variables = {"AGENT_RESEARCH_URL": "https://env.example", "AGENT_RESEARCH_TOKEN": "tpl_env"}
        with mock.patch.dict(os.environ, variables):
            with self.assertRaisesRegex(InvalidArgument, "No token"):
                client(token="")
            with self.assertRaisesRegex(InvalidArgument, "No address"):
                client(base_url="")
        # A file's last line ends with a line end.
        self.assertEqual(client(token=" tpl_given\n")._token.authorization(), "Bearer tpl_given")

    def test_tokens_of_a_thousand_characters(self) -> None:
        self.assertEqual(Token("x" * 1000).hidden_in(f"a{'x' * 1000}b"), "a<token>b")
        self.assertEqual(Token("tpl_a").hidden_in("tpl_a, tpl_ab, a"), "<token>, <token>b, a")
        with self.assertRaisesRegex(TypeError, "Tokens cannot be pickled."):
            pickle.dumps(Token("tpl_a"))
        for text in ("x" * 1001, "", "a b", "a\n"):
            with self.assertRaises(InvalidArgument):
                Token(text)


class TestReads(unittest.TestCase):
    def test_versions(self) -> None:
        made = client(study(), study())
        self.assertEqual(made.get_study(ID, version=3)["version"], 3)
        made.get_study(ID.upper())
        targets = [target for _, target, _, _ in made.asked]
        self.assertEqual(targets, [f"/api/v1/studies/{ID}/versions/3", f"/api/v1/studies/{ID.upper()}"])
        for version in (0, -1, True, 1.0, "1"):
            with self.assertRaisesRegex(InvalidArgument, "version must be an integer of at least 1."):
                client().get_study(ID, version=version)
        with self.assertRaisesRegex(AnswerInvalid, "different version"):
            client(study(version=4)).get_study(ID, version=3)
        # An id is the same in capitals.
        self.assertEqual(client(study(version=1)).get_study(ID.upper())["id"], ID)
        # The id of a draft that became a later version stands for that study, and no other id does.
        other = ID.replace("1", "2")
        self.assertEqual(client(study(id=other, version=2)).get_study(ID)["id"], other)
        for version in (1, 0, None, "2"):
            with self.assertRaisesRegex(AnswerInvalid, "different study"):
                client(study(id=other, version=version)).get_study(ID)

    def test_what_counts_as_json_by_its_header(self) -> None:
        page = {"items": []}
        for kind, taken in (
            ("application/json; charset=utf-8", True),
            ("APPLICATION/JSON", True),
            ("application/json, text/html", False),
            ("text/json", False),
            ("", False),
        ):
            given = answer(200, page)
            given.headers.replace_header("Content-Type", kind)
            if taken:
                self.assertEqual(client(given).list_studies(), page)
            else:
                with self.assertRaisesRegex(AnswerInvalid, "Content-Type is not JSON"):
                    client(given).list_studies()

    def test_a_checksum_is_compared_wherever_there_is_one(self) -> None:
        listed = answer(200, {"items": []}, X_Content_SHA256="0" * 64)
        with self.assertRaisesRegex(AnswerInvalid, "does not match its X-Content-SHA256"):
            client(listed).list_studies()

    def test_pauses_double_from_half_a_second_and_a_service_s_own_wait_counts(self) -> None:
        broke = Failure(ConnectionFailed("It broke."), True)
        page = answer(200, {"items": []})
        for outcomes, pauses in (
            ([broke, broke, page], [0.5, 1.0]),
            ([answer(503, {}), broke, page], [0.5, 1.0]),
            ([answer(503, {}, Retry_After="3"), answer(502, {}), page], [3, 1.0]),
            ([answer(503, {}, Retry_After="0"), page], [0]),
        ):
            with mock.patch("agent_research._client.time.sleep") as sleep:
                client(*outcomes).list_studies()
            self.assertEqual([call.args[0] for call in sleep.call_args_list], pauses)
        with mock.patch("agent_research._client.time.sleep") as sleep, self.assertRaises(ConnectionFailed):
            client(broke, broke, broke).list_studies()
        self.assertEqual(sleep.call_count, 2)
        # What cannot help is not tried again.
        for status in (400, 404, 429):
            with self.assertRaises(Exception) as caught:
                client(answer(status, {})).list_studies()
            self.assertEqual(caught.exception.status, status)

    def test_a_pause_that_reaches_the_deadline_is_not_made(self) -> None:
        made = client(answer(503, {}, Retry_After="30"), timeout=30)
        with mock.patch("agent_research._client.time") as clock, self.assertRaises(ServiceUnavailable):
            clock.monotonic.return_value = 100.0
            made.list_studies()
        clock.sleep.assert_not_called()
        self.assertEqual((made.given["deadline"], made.given["most"]), (130.0, 4_000_000))

    def test_repeated_reads_end_at_the_deadline_of_the_first(self) -> None:
        broke = Failure(ConnectionFailed("It broke."), True)
        made = client(broke, broke, answer(200, {"items": []}), timeout=30)
        with mock.patch("agent_research._client.time") as clock:
            clock.monotonic.side_effect = count(100.0, 5)
            made.list_studies()
        self.assertEqual((len(made.asked), made.given["deadline"]), (3, 130.0))

    def test_what_every_request_says(self) -> None:
        made = client(answer(200, {"items": []}))
        made.list_studies(query="a", limit=0, offset=0)
        self.assertEqual(made.asked[0][1], "/api/v1/studies?q=a&limit=0&offset=0")
        self.assertEqual(
            made.asked[0][2],
            {
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "Connection": "close",
                "User-Agent": "agent-research-client/0.1.0",
            },
        )


class TestWrites(unittest.TestCase):
    CREATED = {"id": ID, "review_url": "https://a.example/drafts/1"}

    def test_what_is_sent(self) -> None:
        made = client(answer(201, self.CREATED), answer(201, self.CREATED), answer(201, self.CREATED))
        self.assertEqual(made.save_private_draft({"a": ["é", 1]}, idempotency_key="k" * 200), self.CREATED)
        method, target, headers, body = made.asked[0]
        self.assertEqual((method, target, body), ("POST", "/api/v1/studies", '{"a":["é",1]}'.encode()))
        self.assertEqual((headers["Content-Type"], headers["Content-Length"], headers["Idempotency-Key"]), ("application/json", "14", "k" * 200))
        # Halves of pairs are escaped, as short as the rest.
        made.save_private_draft({"a": "\ud800", "b": 1})
        self.assertEqual(made.asked[1][3], b'{"a":"\\ud800","b":1}')
        made.save_private_draft({"a": 1})
        keys = [headers["Idempotency-Key"] for _, _, headers, _ in made.asked]
        self.assertNotEqual(keys[1], keys[2])
        for key in ("k" * 201, "a b", "é"):
            with self.assertRaisesRegex(InvalidArgument, "1 to 200 visible ASCII"):
                client().save_private_draft({}, idempotency_key=key)

    def test_a_million_bytes_and_not_one_more(self) -> None:
        made = client(answer(201, self.CREATED))
        made.save_private_draft({"a": "x" * (1_000_000 - len('{"a":""}'))})
        self.assertEqual(len(made.asked[0][3]), 1_000_000)
        with self.assertRaisesRegex(InvalidArgument, "has 1000001 bytes; at most 1000000"):
            client().save_private_draft({"a": "x" * (1_000_001 - len('{"a":""}'))})

    def test_what_a_draft_has_to_say_of_itself(self) -> None:
        for change in (
            {"review_url": "http://a.example/1"},
            {"review_url": "https://"},
            {"review_url": "https://a.example/a b"},
            {"review_url": 7},
            {"id": "1"},
            {"id": None},
        ):
            with self.assertRaises(DraftMayExist) as caught:
                client(answer(201, {**self.CREATED, **change})).save_private_draft({}, idempotency_key="own")
            self.assertIn("has no id and review_url", str(caught.exception))
            self.assertEqual((caught.exception.idempotency_key, caught.exception.status), ("own", 201))

    def test_whether_a_draft_may_exist(self) -> None:
        redirect = RedirectRefused("No.")
        redirect.status = 307
        may: list[tuple[Answer | Failure, type[Exception]]] = [
            (Failure(ConnectionFailed("It broke."), True), DraftMayExist),
            (Failure(ConnectionFailed("Nothing listens."), False), ConnectionFailed),
            (Failure(redirect, True), RedirectRefused),
            (answer(200, self.CREATED), DraftMayExist),
            (answer(204, b""), DraftMayExist),
            (answer(400, {}), RequestRefused),
            (answer(499, {}), RequestRefused),
            (answer(500, {"code": "fault"}), DraftMayExist),
            (answer(504, {}), DraftMayExist),
            (answer(503, {"code": "unavailable"}), DraftMayExist),
            (answer(503, {"code": "disabled"}), ServiceUnavailable),
        ]
        for outcome, kind in may:
            with self.subTest(outcome), self.assertRaises(kind) as caught:
                client(outcome).save_private_draft({}, idempotency_key="own")
            self.assertIs(type(caught.exception), kind)


class TestRefusals(unittest.TestCase):
    def test_waits(self) -> None:
        now = time.time()
        with mock.patch("agent_research._refusals.time.time", return_value=now):
            exact = formatdate(int(now) + 60, usegmt=True)
            past = formatdate(int(now) - 60, usegmt=True)
            for status, header, wait in (
                (429, "999999999", 999_999_999),
                (429, "1000000000", None),
                (503, "7", 7),
                (500, "7", None),
                (403, "7", None),
                (429, exact, 60),
                (429, past, 0),
            ):
                self.assertEqual(refusal(answer(status, {}, Retry_After=header), TOKEN).retry_after, wait, (status, header))
        self.assertIn("Wait 7 s.", str(refusal(answer(503, {}, Retry_After="7"), TOKEN)))
        self.assertNotIn("does not say", str(refusal(answer(503, {}), TOKEN)))
        self.assertIn("did not say how long to wait", str(refusal(answer(429, {}), TOKEN)))

    def test_a_date_is_rounded_up(self) -> None:
        with mock.patch("agent_research._refusals.time.time", return_value=1_000_000_000.25):
            date = formatdate(1_000_000_010, usegmt=True)
            self.assertEqual(refusal(answer(429, {}, Retry_After=date), TOKEN).retry_after, 10)

    def test_what_is_kept_of_the_service_s_words(self) -> None:
        body = {"error": "e" * 500, "code": "a_b", "field": "f" * 501, "reason": "r" * 1001, "request_id": ID}
        error = refusal(answer(410, body), TOKEN)
        self.assertEqual(str(error), f"{'e' * 500} Reason: {'r' * 1000}… (410)")
        self.assertEqual((error.field, error.reason), ("f" * 500 + "…", "r" * 1000 + "…"))
        self.assertEqual((error.code, error.request_id), ("a_b", ID))
        error = refusal(answer(410, {**body, "error": "e" * 501, "reason": "r" * 1000}), TOKEN)
        self.assertEqual(str(error), f"{'e' * 500}… Reason: {'r' * 1000} (410)")
        error = refusal(answer(410, {"reason": "Of tpl_secret, \u202e."}), TOKEN)
        self.assertEqual(error.reason, "Of <token>, \\u202e.")
        # What is cut holds no half of it, either.
        error = refusal(answer(400, {"error": "e" * 495 + " tpl_secret"}), TOKEN)
        self.assertEqual(str(error), f"{'e' * 495} <tok… (400)")
        for code in ("a1", "A", "a-b", "a" * 65, ""):
            self.assertIsNone(refusal(answer(400, {"code": code}), TOKEN).code, code)
        self.assertEqual(refusal(answer(400, {"code": "a" * 64}), TOKEN).code, "a" * 64)

    def test_what_is_said_where_the_service_says_nothing(self) -> None:
        for status, sentence in (
            (400, "The request is invalid. (400)"),
            (401, "The token is missing, invalid, expired or revoked. (401)"),
            (403, "The token lacks permission for this. (403)"),
            (404, "No such study, or this token may not read it. (404)"),
            (410, "This is no longer available. (410)"),
            (418, "The service is unavailable. (418)"),
            (500, "The service is unavailable. (500)"),
        ):
            self.assertEqual(str(refusal(answer(status, b"<html>"), TOKEN)), sentence)


class TestJson(unittest.TestCase):
    def test_an_object_means_one_thing(self) -> None:
        self.assertEqual(parse_object(b'{"a": {"a": [{"a": 1}]}}'), {"a": {"a": [{"a": 1}]}})
        for body in (b'{"a": 1, "a": 1}', b'{"a": 1, "\\u0061": 1}', b'{"b": [{"a": 1, "a": 2}]}'):
            with self.assertRaisesRegex(AnswerInvalid, "the same key twice"):
                parse_object(body)
        for body in (b"[]", b"1", b"null"):
            with self.assertRaisesRegex(AnswerInvalid, "it is not an object"):
                parse_object(body)

    def test_numbers(self) -> None:
        self.assertEqual(parse_object(b'{"a": ' + b"9" * 40 + b"}"), {"a": 10**40 - 1})
        for number in (b"9" * 41, b"-" + b"9" * 40, b"1e400", b"-1e400", b"Infinity"):
            with self.assertRaisesRegex(AnswerInvalid, "has more than 40 digits|is not finite"):
                parse_object(b'{"a": ' + number + b"}")


class Sockets:
    """Stands for the module: addresses whose connections end as said, and the patience with each."""

    def __init__(self, *ends: OSError | None) -> None:
        self.left = list(ends)
        self.patience: list[float] = []
        self.closed = 0

    def __call__(self, *_: Any) -> Sockets:
        return self

    def settimeout(self, seconds: float) -> None:
        self.patience.append(seconds)

    def connect(self, _: Any) -> None:
        end = self.left.pop(0)
        if end is not None:
            raise end

    def close(self) -> None:
        self.closed += 1


class TestConnecting(unittest.TestCase):
    def connected(self, *ends: OSError | None) -> tuple[Sockets, Any]:
        sockets = Sockets(*ends)
        addresses = [(0, 0, 0, "", ("::1", index)) for index in range(len(ends))]
        with (
            mock.patch("socket.getaddrinfo", return_value=addresses),
            mock.patch("socket.socket", sockets),
            mock.patch.object(transport, "time", mock.Mock(monotonic=lambda: 100.0)),
        ):
            try:
                return sockets, transport._connected("a.example", 443, 112.0)
            except OSError as error:
                return sockets, error

    def test_each_address_in_turn_has_its_share_of_what_is_left(self) -> None:
        refused = ConnectionRefusedError()
        sockets, made = self.connected(refused, TimeoutError(), None)
        self.assertEqual(sockets.patience, [4.0, 6.0, 12.0])
        self.assertEqual((made, sockets.closed), (sockets, 2))
        last = OSError("the last")
        sockets, failure = self.connected(refused, last)
        self.assertIs(failure, last)
        self.assertEqual(sockets.closed, 2)

    def test_what_breaks_behind_the_request_is_the_connection_and_before_it_the_service_s_tls(self) -> None:
        with mock.patch("ssl.create_default_context"):
            made = transport.Transport("a.example", 443, "https://a.example", None, TOKEN)
        broken = ssl.SSLError(1, "[SSL: A_REASON] A text.")
        broken.reason = "A_REASON"
        for sent, kind, sentence in (
            (False, TLSFailed, "TLS error with https://a.example (A_REASON)."),
            (True, ConnectionFailed, "The connection to https://a.example broke (SSLError)."),
        ):
            told = made._explained(broken, sent)
            self.assertEqual((type(told), str(told)), (kind, sentence))

    def test_a_request_that_breaks_is_still_answered_or_told_by_what_broke_it(self) -> None:
        broken, gone = BrokenPipeError(), ConnectionResetError()
        connection = mock.Mock()
        connection.endheaders.side_effect = broken
        connection.getresponse.return_value = "a refusal"
        self.assertEqual(transport._answered(connection, b"body"), "a refusal")
        connection.getresponse.side_effect = gone
        with self.assertRaises(BrokenPipeError) as caught:
            transport._answered(connection, b"body")
        self.assertIs(caught.exception, broken)
        # The deadline is over for the answer, too.
        connection.getresponse.reset_mock()
        connection.endheaders.side_effect = TimeoutError()
        with self.assertRaises(TimeoutError):
            transport._answered(connection, b"body")
        connection.getresponse.assert_not_called()

    def test_a_header_counts_once(self) -> None:
        headers = HTTPMessage()
        self.assertIsNone(transport._single(headers, "A"))
        headers["A"] = " x "
        self.assertEqual(transport._single(headers, "a"), "x")
        Message.add_header(headers, "A", "y")
        with self.assertRaisesRegex(AnswerInvalid, "The response has 2 A headers."):
            transport._single(headers, "A")
