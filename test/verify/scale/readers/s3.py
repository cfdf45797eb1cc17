"""An S3 server for tests."""

from __future__ import annotations

import unittest

from moto.server import ThreadedMotoServer


def start_s3(test: type[unittest.TestCase]) -> str:
    """Starts moto's server on a free port, until the end of the class. Returns its URL."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    test.addClassCleanup(server.stop)
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"
