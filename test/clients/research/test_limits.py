"""Redirects, slow drips and floods: each call ends, in time, after one request."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from agent_research import (
    AnswerInvalid,
    AnswerTooLarge,
    DeadlineExceeded,
    DraftMayExist,
    NotAuthenticated,
    RedirectRefused,
    RequestRefused,
    ResearchClient,
)
from attack import (
    CERTIFICATE,
    EMPTY_PAGE,
    ID,
    JSON,
    PACKAGE,
    PAIR,
    TOKEN,
    AttackCase,
    sends,
    study,
    then_drips,
    with_checksum,
)
from hostile import Hostile, Peer, Script, answer


class TestRedirects(AttackCase):
    def test_redirects_raise_before_a_second_request(self) -> None:
        with Hostile(sends(answer(body=EMPTY_PAGE)), PAIR) as other, Hostile(sends(b""), None) as plain:
            places = [
                f"{other.url}/api",
                f"http://localhost:{plain.port}/",
                "/api/v1/studies",
                "//localhost",
                "",
            ]
            for status in (
                "301 Moved",
                "302 Found",
                "303 See Other",
                "307 Temporary",
                "308 Permanent",
                "300 Many",
            ):
                for place in places:
                    with self.subTest(status=status, place=place):
                        script = sends(answer(status, b"", (f"Location: {place}",)))
                        error, server = self.no_read(RedirectRefused, script)
                        self.assertEqual(len(server.requests), 1)
                        self.assertEqual(error.status, int(status[:3]))
            self.no_write(RedirectRefused, sends(answer("307 Temporary", b"", (f"Location: {other.url}",))))
        self.assertEqual((other.connections, plain.connections), (0, 0))


class TestDeadline(AttackCase):
    def test_a_slow_drip_hits_the_total_deadline(self) -> None:
        chunked = answer(headers=(JSON, "Transfer-Encoding: chunked"), length=False)
        blanks = b" " * 100_000
        drips: dict[str, Script] = {
            "of the body": then_drips(answer(body=blanks)[:200], blanks),
            "of headers": then_drips(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 999),
            "of one header": then_drips(b"HTTP/1.1 200 OK\r\nA: ", blanks),
            "of the status": then_drips(b"", b"HTTP/1.1 " + blanks),
            "of interim answers": then_drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 9999, 0.002),
            "of chunks": then_drips(chunked, b"1\r\na\r\n" * 9999),
            "of nothing": lambda peer, _: peer.wait(),
        }
        refusal = then_drips(b"HTTP/1.1 401 No\r\nContent-Length: 9999\r\n\r\n", b" " * 9999)
        # All at a time: each takes its whole deadline, which leaves a busy machine time for the handshake.
        with ThreadPoolExecutor(len(drips) * 2 + 1) as threads:
            reads = {
                name: threads.submit(self.no_read, DeadlineExceeded, script, timeout=4)
                for name, script in drips.items()
            }
            writes = {
                name: threads.submit(self.no_write, DraftMayExist, script, timeout=4)
                for name, script in drips.items()
            }
            refused = threads.submit(self.no_read, NotAuthenticated, refusal, timeout=4)
        for name in drips:
            with self.subTest(name):
                reads[name].result()
                error = writes[name].result()
                self.assertIn("The draft may exist", str(error))
                self.assertIn(error.idempotency_key, str(error))
        with self.subTest("of a refusal's body: it is the refusal"):
            self.assertEqual(refused.result()[0].status, 401)

    def test_a_handshake_that_nobody_answers(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://localhost:{silent.getsockname()[1]}"
            client = ResearchClient(url, TOKEN, ca_file=CERTIFICATE, timeout=0.25)
            self.fails(DeadlineExceeded, lambda: client.get_study(ID))
            # The package has not left this machine, so no draft exists.
            self.fails(DeadlineExceeded, lambda: client.save_private_draft(PACKAGE))


class TestSize(AttackCase):
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
                # Counted when sent: unread bytes are in the system's buffers.
                self.assertLess(server.sent, 100 * 1024**2)
                self.assertEqual(server.connections, 1)

    def test_the_limit_is_exact(self) -> None:
        padding = b" " * (5000 - len(study()))
        body = study() + padding
        with Hostile(sends(answer(body=body, headers=with_checksum(body))), PAIR) as server:
            self.assertEqual(self.client(server, max_bytes=5000).get_study(ID)["id"], ID)
            self.fails(AnswerTooLarge, lambda: self.client(server, max_bytes=4999).get_study(ID))

    def test_compressed_answers_are_refused(self) -> None:
        for encoding in ("gzip", "deflate", "x-none"):
            headers = (*with_checksum(study()), f"Content-Encoding: {encoding}")
            error, _ = self.no_read(AnswerInvalid, sends(answer(body=study(), headers=headers)))
            self.assertIn("compressed", str(error))
        headers = (*with_checksum(study()), "Content-Encoding: Identity")
        with Hostile(sends(answer(body=study(), headers=headers)), PAIR) as server:
            self.assertEqual(self.client(server).get_study(ID)["id"], ID)
