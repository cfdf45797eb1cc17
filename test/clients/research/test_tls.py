"""Peers and headers of the client."""

from __future__ import annotations

import os
import socket
import threading
from unittest import mock

from agent_research import ResearchClient, TLSFailed
from attack import CERTIFICATE, EMPTY_PAGE, PACKAGE, PAIR, TOKEN, AttackCase, sends
from hostile import Hostile, answer


class TestTLS(AttackCase):
    def test_certificates_that_prove_nothing(self) -> None:
        with Hostile(sends(answer(body=EMPTY_PAGE)), PAIR) as server:
            with mock.patch.dict(os.environ):
                os.environ.pop("AGENT_RESEARCH_CA_FILE", None)
                unknown = ResearchClient(server.url, TOKEN, timeout=120)
                self.fails(TLSFailed, unknown.list_studies)
            other = self.client(server, ca_file=os.environ["TAPLINE_TEST_OTHER_CERTIFICATE"])
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
            client = ResearchClient(f"https://localhost:{plain.getsockname()[1]}", TOKEN, timeout=120)

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
