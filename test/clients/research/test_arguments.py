"""Refusals before anything is sent, and the display of the token."""

from __future__ import annotations

import os
import pickle
import socket
import unittest
from unittest import mock

from agent_research import ConnectionFailed, InvalidArgument, ResearchClient
from attack import ID, PACKAGE, TOKEN


def look_up(host: str, *_: object, **__: object) -> None:
    """As socket.getaddrinfo does, without asking anybody."""
    host.encode("idna")
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


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

    def test_names_that_no_host_has(self) -> None:
        for host in ("a" * 70 + ".example", "..", "absent.example"):
            with self.subTest(host), mock.patch("socket.getaddrinfo", wraps=look_up):
                with self.assertRaisesRegex(ConnectionFailed, "does not resolve"):
                    ResearchClient(f"https://{host}", TOKEN).save_private_draft(PACKAGE)
        with self.assertRaises(InvalidArgument):
            ResearchClient("https://127.0.0.1:9", TOKEN).list_studies(query="\ud800")

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
