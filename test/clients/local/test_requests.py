"""What each method asks a service, of how much patience, and what it gives of the answer. Nothing listens anywhere."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import socket
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any
from unittest import mock

from tapline_lab import AsyncLab, Job, Lab, ServingModel, TaplineError
from tapline_lab._http import Transport
from tapline_lab._waiting import Waiting

ID = "0123456789abcdef0123456789abcdef"
JOB = {"id": ID, "operation": "inspect", "status": "completed"}
Asked = tuple[str, str, Any, float]


class Answer(io.BytesIO):
    headers: dict[str, str] = {}


def asking(call: Callable[[], Any], answer: object) -> tuple[Any, list[Asked]]:
    """Result and requests of a call: method, path, body and timeout."""
    seen: list[Asked] = []

    def open_(_: Any, request: urllib.request.Request, timeout: float) -> Answer:
        body = None if request.data is None else json.loads(bytes(request.data))  # type: ignore[arg-type]
        seen.append((request.get_method(), request.full_url.removeprefix("http://127.0.0.1:1"), body, timeout))
        if body is not None:
            assert request.get_header("Content-type") == "application/json"
        return Answer(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    with mock.patch.object(urllib.request.OpenerDirector, "open", open_):
        return call(), seen


def exactly(requests: list[Asked]) -> list[tuple[object, ...]]:
    """Requests with their bodies as text: to Python, true is 1."""
    return [(*each[:2], json.dumps(each[2], sort_keys=True), each[3]) for each in requests]


class Plug:
    """A socket with the same answer to each request."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.asked = 0

    def sendall(self, data: bytes) -> None:
        self.sent.append(bytes(data))

    def setsockopt(self, *_: object) -> None:
        pass

    def recv(self, _: int) -> bytes:
        """In two parts."""
        self.asked += 1
        return b'200 OK\r\nContent-Length: 11\r\n\r\n{"done": 1}' if self.asked % 2 == 0 else b"HTTP/1.1 "

    def close(self) -> None:
        pass


class TestShortCalls(unittest.TestCase):
    def test_calls_share_a_connection_and_each_is_one_packet(self) -> None:
        plugs: list[Plug] = []

        def connect(*_: object) -> Plug:
            plugs.append(Plug())
            return plugs[-1]

        transport = Transport("http://127.0.0.1:1", 5, "secret")
        with mock.patch.object(socket, "create_connection", connect):
            found = [transport.quick("/lab/forward", {"n": n}) for n in range(3)]
        self.assertEqual(found, [{"done": 1}] * 3)
        [plug] = plugs
        self.assertEqual(len(plug.sent), 3)
        for n, packet in enumerate(plug.sent):
            head, _, body = packet.partition(b"\r\n\r\n")
            self.assertEqual(body, b'{"n": %d}' % n)
            lines = head.decode().split("\r\n")
            self.assertEqual(lines[0], "POST /lab/forward HTTP/1.1")
            for line in ("Host: 127.0.0.1:1", "Content-Length: 8", "Content-Type: application/json", "Authorization: Bearer secret"):
                self.assertIn(line, lines)

    def test_a_key_with_a_line_break_is_not_sent(self) -> None:
        with self.assertRaisesRegex(ValueError, "header"):
            Transport("http://127.0.0.1:1", 5, "a\r\nX: b").quick("/lab/forward", {})


class TestServing(unittest.TestCase):
    def test_what_each_method_asks(self) -> None:
        texts = {"positive": ["a"], "negative": ["b", "c"]}
        told = {"watch": {"norms": True}}
        user = [{"role": "user", "content": "Who?"}]
        chat, complete = "/v1/chat/completions", "/v1/completions"
        cases: list[tuple[Callable[[ServingModel], Any], object, Asked]] = [
            (
                lambda m: m.make_vector("v", ("a",), ("b", "c"), range(2)),
                {},
                (
                    "POST",
                    "/lab/vectors",
                    {"name": "v", **texts, "layers": [0, 1], "position": "last", "method": "difference"},
                    600,
                ),
            ),
            (
                lambda m: m.make_vector("v", ["a"], ["b", "c"], [3], position="mean", method="pca"),
                {},
                ("POST", "/lab/vectors", {"name": "v", **texts, "layers": [3], "position": "mean", "method": "pca"}, 600),
            ),
            (
                lambda m: m.make_probe("p", ("a",), ("b", "c"), 4),
                {},
                ("POST", "/lab/probes", {"name": "p", **texts, "layer": 4, "position": "last"}, 600),
            ),
            (
                lambda m: m.make_probe("p", ["a"], ["b", "c"], 4, position="mean"),
                {},
                ("POST", "/lab/probes", {"name": "p", **texts, "layer": 4, "position": "mean"}, 600),
            ),
            (
                lambda m: m.chat((*user, {"role": "assistant", "content": "I."}, *user)),
                {"choices": []},
                ("POST", chat, {"messages": [*user, {"role": "assistant", "content": "I."}, *user]}, 5),
            ),
            (lambda m: m.chat("Who?"), {"choices": []}, ("POST", chat, {"messages": user}, 5)),
            (
                lambda m: m.chat(user, tapline=told, max_tokens=3, n=2),
                {"choices": []},
                ("POST", chat, {"messages": user, "max_tokens": 3, "n": 2, "tapline": told}, 5),
            ),
            (
                lambda m: m.complete("The", tapline=told, temperature=0),
                {"choices": []},
                ("POST", complete, {"prompt": "The", "temperature": 0, "tapline": told}, 5),
            ),
            (lambda m: m.complete("The"), {"choices": []}, ("POST", complete, {"prompt": "The"}, 5)),
            (lambda m: m.remove_vector("a/b"), {}, ("DELETE", "/lab/vectors/a%2Fb", None, 5)),
            (lambda m: m.remove_probe("a/b"), {}, ("DELETE", "/lab/probes/a%2Fb", None, 5)),
            (lambda m: m.vectors(), {"vectors": []}, ("GET", "/lab/vectors", None, 5)),
            (lambda m: m.probes(), {"probes": []}, ("GET", "/lab/probes", None, 5)),
            (lambda m: m.capabilities(), {}, ("GET", "/lab/capabilities", None, 5)),
        ]
        for call, answer, expected in cases:
            with self.subTest(expected[1]):
                _, seen = asking(lambda: call(ServingModel(1, timeout=5)), answer)
                self.assertEqual(exactly(seen), exactly([expected]))

    def test_what_each_method_gives(self) -> None:
        model = ServingModel(1)
        for call, answer, given in (
            (lambda: model.chat("x"), {"choices": [{"a": 1}, {"a": 2}], "more": 2}, [{"a": 1}, {"a": 2}]),
            (lambda: model.vectors(), {"vectors": [{"name": "v"}]}, [{"name": "v"}]),
            (lambda: model.probes(), {"probes": [{"name": "p"}]}, [{"name": "p"}]),
            (lambda: model.remove_probe("p"), {"deleted": True}, None),
            (lambda: model.make_probe("p", [], [], 0), {"name": "p"}, {"name": "p"}),
        ):
            self.assertEqual(asking(call, answer)[0], given)
        # A longer timeout is kept.
        _, seen = asking(lambda: ServingModel(1, timeout=700).make_vector("v", [], [], []), {})
        self.assertEqual(seen[0][3], 700)

    def test_a_measurement_names_the_model_that_is_there(self) -> None:
        for layers, sent in ((None, {}), ([], {"layers": []}), (range(1), {"layers": [0]})):
            _, seen = asking(lambda layers=layers: ServingModel(1, timeout=5).inspect("p", layers, 9), {"model": "m"})
            body = {"model": "m", "prompt": "p", "max_input_tokens": 9, **sent}
            looked, measured = ("GET", "/lab/capabilities", None, 5), ("POST", "/lab/activations", body, 5)
            self.assertEqual(exactly(seen), exactly([looked, measured]))
        for none in ({"model": None}, {}):
            with self.assertRaisesRegex(TaplineError, "has no model loaded"):
                asking(lambda none=none: ServingModel(1).inspect("p"), none)

    def test_a_capture_is_asked_for_as_arrays_by_its_own_name(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("NumPy is not installed")
        buffer = io.BytesIO()
        rows, tokens = np.array([4, 6], np.int32), np.array([7, 8], np.int32)
        np.savez(buffer, layer_12=np.ones((2, 3), np.float32), rows=rows, token_ids=tokens, prompt_tokens=np.int32(5))
        kept, seen = asking(lambda: ServingModel(1, timeout=5).capture("a/b"), buffer.getvalue())
        self.assertEqual(seen, [("GET", "/lab/captures/a%2Fb?format=npz", None, 5)])
        self.assertEqual((list(kept.layers), kept.layers[12].shape, kept.prompt_tokens), ([12], (2, 3), 5))
        self.assertEqual((kept.rows.tolist(), kept.token_ids.tolist()), ([4, 6], [7, 8]))


class TestLab(unittest.TestCase):
    def test_what_each_method_asks_now_and_awaited(self) -> None:
        here, jobs, one = os.getcwd(), "/lab/v1/jobs", f"/lab/v1/jobs/{ID}"
        true = [{"text": "a", "label": True, "split": "train"}]
        whole = [{"text": "a", "label": 1, "split": "train"}]
        paper = {"template": "What is X?", "marker": "X"}

        def submitted(operation: str, **fields: Any) -> Asked:
            return ("POST", jobs, {"operation": operation, "model": "demo", **fields}, 5)

        cases: list[tuple[Callable[[Any], Any], object, Asked]] = [
            (lambda lab: lab.health(), {}, ("GET", "/lab/v1/health", None, 5)),
            (lambda lab: lab.schema(), {}, ("GET", "/lab/v1/openapi.json", None, 5)),
            (lambda lab: lab.jobs(), {"jobs": []}, ("GET", jobs, None, 5)),
            (lambda lab: lab.submit("inspect", "demo", seed=3, layers=None), JOB, submitted("inspect", seed=3)),
            (lambda lab: lab.inspect("demo", "p", layers=range(2)), JOB, submitted("inspect", prompt="p", layers=[0, 1])),
            (lambda lab: lab.compare("demo", "p", min=1), JOB, submitted("compare", prompt="p", min=1)),
            (lambda lab: lab.probe("demo", true, rows="all"), JOB, submitted("probe", examples=whole, rows="all")),
            (lambda lab: lab.sae("demo", true, k=3), JOB, submitted("sae", examples=whole, k=3)),
            (lambda lab: lab.sae("demo", None, "rows"), JOB, submitted("sae", **{"from": f"{here}/rows"})),
            (lambda lab: lab.sae("demo", extraction=Path("rows")), JOB, submitted("sae", **{"from": f"{here}/rows"})),
            (lambda lab: lab.features("demo", "d", ("a", "b"), top=2), JOB, submitted("features", dictionary="d", texts=["a", "b"], top=2)),
            (lambda lab: lab.extract("demo", "a.txt", "out", plan=True), JOB, submitted("extract", data=f"{here}/a.txt", out=f"{here}/out", plan=True)),
            (lambda lab: lab.extract("demo", out="out"), JOB, submitted("extract", out=f"{here}/out")),
            (lambda lab: lab.drift("demo", "owner/name", true, seed=1), JOB, submitted("drift", other="owner/name", examples=whole, seed=1)),
            (lambda lab: lab.drift("demo", Path("b.gguf"), []), JOB, submitted("drift", other=f"{here}/b.gguf", examples=[])),
            (lambda lab: lab.patch_sweep("demo", "a", "b", foil_token="x"), JOB, submitted("patch_sweep", clean="a", corrupted="b", foil_token="x")),
            (lambda lab: lab.patch_sweep("demo", pairs=[]), JOB, submitted("patch_sweep", pairs=[])),
            (lambda lab: lab.explain("demo", "p", 3, "What is X?", "X", length=2), JOB, submitted("explain", prompt="p", layer=3, **paper, length=2)),
            (lambda lab: lab.graph("demo", "p", nodes=7), JOB, submitted("graph", prompt="p", nodes=7)),
            (lambda lab: lab.job(ID), JOB, ("GET", one, None, 5)),
            (lambda lab: lab.cancel(ID), JOB, ("POST", f"{one}/cancel", {}, 5)),
            (lambda lab: lab.job("a/b"), JOB, ("GET", f"{jobs}/a%2Fb", None, 5)),
            (lambda lab: lab.dictionaries(), {"dictionaries": []}, ("GET", "/lab/dictionaries", None, 5)),
            (lambda lab: lab.dictionary("a/b"), {}, ("GET", "/lab/dictionaries/a%2Fb", None, 5)),
            (
                lambda lab: lab.add_dictionary("d", Path("x"), 4, 5, "main", "mid"),
                {},
                ("PUT", "/lab/dictionaries/d", {"from": "x", "layer": 4, "point": "mid", "k": 5, "revision": "main"}, 3600),
            ),
            (lambda lab: lab.add_dictionary("d", "x", k=0), {}, ("PUT", "/lab/dictionaries/d", {"from": "x", "k": 0}, 3600)),
            (lambda lab: lab.remove_dictionary("d"), {}, ("DELETE", "/lab/dictionaries/d", None, 5)),
            (lambda lab: lab.lenses(), {"lenses": []}, ("GET", "/lab/lenses", None, 5)),
            (lambda lab: lab.add_lens("l", "demo", "main"), {}, ("PUT", "/lab/lenses/l", {"from": "demo", "revision": "main"}, 3600)),
            (lambda lab: lab.add_lens("l", Path("x")), {}, ("PUT", "/lab/lenses/l", {"from": "x"}, 3600)),
            (lambda lab: lab.remove_lens("l"), {}, ("DELETE", "/lab/lenses/l", None, 5)),
        ]
        origin = "http://127.0.0.1:1"
        for index, (call, answer, expected) in enumerate(cases):
            with self.subTest(f"{index} {expected[1]}"):
                now = asking(lambda: call(Lab(origin, 5)), answer)
                awaited = asking(lambda: asyncio.run(call(AsyncLab(origin, 5))), answer)
                self.assertEqual(exactly(now[1]), exactly([expected]))
                self.assertEqual(exactly(awaited[1]), exactly([expected]))
        # A longer timeout is kept.
        _, seen = asking(lambda: Lab(origin, 4000).add_dictionary("d", "x"), {})
        _, more = asking(lambda: Lab(origin, 4000).add_lens("l", "x"), {})
        self.assertEqual((seen[0][3], more[0][3]), (4000, 4000))

    def test_what_is_awaited_is_the_answer(self) -> None:
        lab = AsyncLab("http://127.0.0.1:1")
        for call, answer, given in (
            (lambda: lab.lenses(), {"lenses": [{"name": "l"}]}, [{"name": "l"}]),
            (lambda: lab.dictionaries(), {"dictionaries": [{"name": "d"}]}, [{"name": "d"}]),
            (lambda: lab.jobs(), {"jobs": [JOB]}, [JOB]),
            (lambda: lab.job(ID), JOB, JOB),
            (lambda: lab.remove_lens("l"), {"deleted": True}, None),
        ):
            self.assertEqual(asking(lambda: asyncio.run(call()), answer)[0], given)
        self.assertEqual(repr(lab), "AsyncLab('http://127.0.0.1:1')")

    def test_an_artifact_is_written_where_it_was_said(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for client in (Lab("http://127.0.0.1:1", 5), AsyncLab("http://127.0.0.1:1", 5)):
                path = Path(folder) / type(client).__name__

                def download(client: Any = client, path: Path = path) -> Any:
                    found = client.artifact(ID, "a b", str(path))
                    return asyncio.run(found) if asyncio.iscoroutine(found) else found

                written, seen = asking(download, b"bytes")
                self.assertEqual(seen, [("GET", f"/lab/v1/jobs/{ID}/artifacts/a%20b", None, 5)])
                self.assertEqual((written, path.read_bytes()), (path, b"bytes"))
            self.assertEqual(sorted(os.listdir(folder)), ["AsyncLab", "Lab"])

    def test_an_artifact_takes_the_place_of_a_file_in_one_step(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a")
            path.write_bytes(b"old, and longer")
            with open(path, "rb") as reader:
                asking(lambda: Lab("http://127.0.0.1:1").artifact(ID, "a", path), b"new")
                # An open file keeps its complete content.
                self.assertEqual((reader.read(), path.read_bytes()), (b"old, and longer", b"new"))

    def test_how_long_was_waited_and_what_broke_is_told(self) -> None:
        lab = Lab("http://127.0.0.1:1", 5)
        for failure, call, kind, sentence in (
            (TimeoutError(), lab.health, TimeoutError, "No response from http://127.0.0.1:1 for 5 s; the request may still be running"),
            (TimeoutError(), lambda: lab.add_lens("l", "x"), TimeoutError, "No response from http://127.0.0.1:1 for 3600 s; the request may still be running"),
            (http.client.IncompleteRead(b"{"), lab.health, urllib.error.URLError, r"http://127.0.0.1:1 broke \(IncompleteRead\)"),
            (ConnectionResetError(), lab.health, urllib.error.URLError, r"http://127.0.0.1:1 broke \(ConnectionResetError\)"),
        ):
            answer = mock.MagicMock()
            answer.__enter__.return_value.read.side_effect = failure
            with mock.patch.object(urllib.request.OpenerDirector, "open", return_value=answer):
                with self.assertRaisesRegex(kind, sentence):
                    call()

    def test_a_folder_is_no_place_for_an_artifact_and_nothing_is_asked(self) -> None:
        with tempfile.TemporaryDirectory() as folder:

            def refused() -> None:
                with self.assertRaises(OSError):
                    Lab("http://127.0.0.1:1").artifact(ID, "a", folder)

            _, seen = asking(refused, b"bytes")
            self.assertEqual((seen, os.listdir(folder)), ([], []))

    def test_a_port_where_nothing_listens_is_told_with_what_would_start_it(self) -> None:
        refused = urllib.error.URLError(ConnectionRefusedError())
        for call, address, starter in (
            (lambda: Lab().health(), "8980", "tapline lab$"),
            (lambda: ServingModel().capabilities(), "8971", "tapline serve$"),
            (lambda: Lab("http://127.0.0.1:9").health(), "9", "tapline lab or tapline serve, --port 9$"),
        ):
            with mock.patch.object(urllib.request.OpenerDirector, "open", side_effect=refused):
                with self.assertRaises(urllib.error.URLError) as caught:
                    call()
            sentence = f"nothing listens at http://127.0.0.1:{address}; start it with {starter}"
            self.assertRegex(str(caught.exception.reason), sentence)

    def test_of_a_refusal_a_mebibyte_is_read(self) -> None:
        fits = "x" * (1_048_576 - len('{"error": ""}'))
        for said, sentence in ((fits, fits), (f"{fits}x", "/lab/v1/health returned status 503.")):
            body = io.BytesIO(json.dumps({"error": said}).encode())
            refused = urllib.error.HTTPError("http://127.0.0.1:1", 503, "No", Message(), body)
            with mock.patch.object(urllib.request.OpenerDirector, "open", side_effect=refused):
                with self.assertRaises(TaplineError) as caught:
                    Lab("http://127.0.0.1:1").health()
            self.assertTrue(str(caught.exception) == sentence, str(caught.exception)[:80])

    def test_what_says_not_what_a_job_says_is_none(self) -> None:
        lab = Lab("http://127.0.0.1:1/")
        self.assertEqual((repr(lab), asking(lab.health, {})[1][0][1]), ("Lab('http://127.0.0.1:1')", "/lab/v1/health"))
        for missing in JOB:
            partly = {name: value for name, value in JOB.items() if name != missing}
            with self.assertRaisesRegex(TaplineError, "http://127.0.0.1:1 returned something that is not a job."):
                asking(lambda partly=partly: lab.job(ID), partly)

    def test_what_has_no_name_is_not_asked_for(self) -> None:
        lab = Lab("http://127.0.0.1:1")
        for call, what in (
            (lambda: lab.job(""), "The job's id is empty."),
            (lambda: lab.cancel(""), "The job's id is empty."),
            (lambda: lab.artifact("", "a", "/nowhere/at/all/a"), "No such file"),
            (lambda: lab.dictionary(""), "The dictionary's name is empty."),
            (lambda: lab.remove_dictionary(""), "The dictionary's name is empty."),
            (lambda: lab.add_lens("", "x"), "The lens's name is empty."),
            (lambda: lab.remove_lens(""), "The lens's name is empty."),
        ):
            with self.assertRaisesRegex((TaplineError, FileNotFoundError), what):
                asking(call, JOB)

    def test_an_answer_that_is_no_object_is_none(self) -> None:
        for body in ([], [1], "x", 7, True, None):
            with self.assertRaisesRegex(TaplineError, "The response of /lab/v1/health is not a JSON object."):
                asking(Lab("http://127.0.0.1:1").health, body)

    def test_a_job_s_artifacts_are_read_once_and_only_those_that_are_its_own(self) -> None:
        names = ["probe-layer-3.npz", "probe-rows-3.npz", "other.npz"]
        done: dict[str, Any] = {**JOB, "operation": "probe", "result": {"artifacts": names}}
        read: list[tuple[str, str]] = []
        job: Job[Any] = Job(done, lambda *given: read.append(given) or b"x")  # type: ignore[func-returns-value]
        for _ in range(2):
            self.assertEqual(job._artifacts("probe", "probe-layer-"), {"probe-layer-3.npz": b"x"})
        self.assertEqual(read, [(ID, "probe-layer-3.npz")])
        with self.assertRaisesRegex(TaplineError, f"Job {ID} is of operation probe, not sae."):
            job._artifacts("sae", "")
        waiting: Job[Any] = Job({**done, "status": "running"}, lambda *_: b"")
        with self.assertRaisesRegex(TaplineError, f"Job {ID} is running; artifacts are available once it has completed."):
            waiting._artifacts("probe", "")


class TestWaiting(unittest.TestCase):
    def waiting(self, *seconds: float) -> Waiting:
        """One that began 0 s ago, with a deadline of 10 s and a clock that shows these seconds."""
        clock = mock.patch("tapline_lab._waiting.time")
        self.addCleanup(clock.stop)
        clock.start().monotonic.side_effect = [100.0, *(100 + each for each in seconds)]
        return Waiting("x", 10)

    def test_a_look_takes_no_longer_than_is_left_but_a_second_at_least(self) -> None:
        waiting = self.waiting(0, 3, 3, 9.5, 20)
        patience = [waiting.patience(longest) for longest in (60, 5, 60, 60, 60)]
        self.assertEqual(patience, [10, 5, 7, 1, 1])

    def test_the_pause_ends_at_the_deadline(self) -> None:
        waiting = self.waiting(4, 4, 9.5, 10)
        running = {"status": "running"}
        self.assertEqual([waiting.pause(running, interval) for interval in (2, 50, 2)], [2, 6, 0.5])
        with self.assertRaisesRegex(TimeoutError, "^Job x is still running after 10 s.$"):
            waiting.pause(running, 2)

    def test_how_a_job_ended(self) -> None:
        waiting = self.waiting()
        ends = [waiting.is_over({"status": status}) for status in ("queued", "running", "completed")]
        self.assertEqual(ends, [False, False, True])
        for job in ({"status": "failed", "error": "Why."}, {"status": "cancelled", "error": ""}, {"status": "interrupted"}):
            with self.assertRaises(TaplineError) as caught:
                waiting.is_over(job)
            self.assertEqual(str(caught.exception), job.get("error") or f"Job x was {job['status']}.")
            self.assertIs(caught.exception.job, job)

    def test_what_is_awaited_is_asked_beside_the_event_loop(self) -> None:
        lab = AsyncLab("http://127.0.0.1:1")
        threads: list[threading.Thread] = []

        def open_(*_: Any, **__: Any) -> Answer:
            threads.append(threading.current_thread())
            return Answer(json.dumps(JOB).encode())

        with mock.patch.object(urllib.request.OpenerDirector, "open", open_):
            for call in (lab.health, lambda: lab.job(ID), lambda: lab.wait(ID)):
                asyncio.run(call())
        self.assertEqual(len(threads), 3)
        self.assertNotIn(threading.current_thread(), threads)

    def test_awaiting_sleeps_the_interval_and_clears_its_line(self) -> None:
        left = [{**JOB, "status": "queued"}, {**JOB, "status": "running"}, JOB]
        lab = AsyncLab("http://127.0.0.1:1")
        with (
            mock.patch.object(lab._lab, "_look", side_effect=left),
            mock.patch("tapline_lab._async.asyncio.sleep", mock.AsyncMock()) as sleep,
            mock.patch("tapline_lab._async.progress_display") as display,
        ):
            self.assertEqual(asyncio.run(lab.wait(ID, interval=7)), JOB)
        self.assertEqual(sleep.await_args_list, [mock.call(7), mock.call(7)])
        line = display.return_value
        self.assertEqual([call.args[0] for call in line.show.call_args_list], left[:2])
        line.clear.assert_called_once_with()
