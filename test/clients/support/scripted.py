"""A service on loopback that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler, str, str, bytes], None]


class Scripted:
    """Use it as a context manager; `seen` holds (method, path, body) of each request."""

    def __init__(self, answer: Answer) -> None:
        seen: list[tuple[str, str, bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen.append((self.command, self.path, body))
                self.close_connection = True
                try:
                    answer(self, self.command, self.path, body)
                except ConnectionError:
                    pass  # the client has gone, as some tests want

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.seen = seen
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def send_json(handler: BaseHTTPRequestHandler, status: int, body: object) -> None:
    send(handler, status, json.dumps(body).encode(), {"Content-Type": "application/json"})


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
