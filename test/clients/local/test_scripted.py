"""The local clients against services that misbehave, and what they send."""

from __future__ import annotations

import inspect
import io
import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest import mock

from scripted import Scripted, send, send_json
from tapline_lab import Lab, ServingModel, TaplineError, connect

ID = "0123456789abcdef0123456789abcdef"


def job(status: str, **more: Any) -> dict[str, Any]:
    progress = {"stage": "capture", "done": 3, "total": 8}
    return {"id": ID, "operation": "inspect", "status": status, "progress": progress, **more}


class TestArguments(unittest.TestCase):
    def sent(self, operation: str, *given: Any, **settings: Any) -> dict[str, Any]:
        with Scripted(lambda handler, *_: send_json(handler, 202, job("queued"))) as service:
            getattr(Lab(service.url), operation)("demo", *given, **settings)
        body: dict[str, Any] = json.loads(service.seen[0][2])
        return body

    def test_ranges_are_lists_and_none_is_absent(self) -> None:
        body = self.sent("inspect", "x", layers=range(2, 5), seed=None, max_input_tokens=8)
        self.assertEqual(body["layers"], [2, 3, 4])
        self.assertNotIn("seed", body)
        self.assertEqual(body["max_input_tokens"], 8)

    def test_truth_values_are_labels_and_other_columns_stay_for_the_service_to_name(self) -> None:
        examples = [{"text": "a", "label": True, "split": "train", "source": "web"}, {"text": "b", "label": 2}]
        body = self.sent("probe", examples)
        self.assertEqual(
            body["examples"],
            [{"text": "a", "label": 1, "split": "train", "source": "web"}, {"text": "b", "label": 2}],
        )
        self.assertIs(type(body["examples"][0]["label"]), int)
        self.assertIs(examples[0]["label"], True)

    def test_numpy_s_numbers(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("NumPy is not installed")
        prompts = self.sent("compare", prompts=["x", "y"], layers=[1])
        self.assertEqual([prompts["prompts"], "prompt" in prompts], [["x", "y"], False])
        body = self.sent("compare", "x", layers=np.arange(2), strengths=np.linspace(0, 1, 3), seed=np.int64(7))
        self.assertEqual((body["layers"], body["strengths"], body["seed"]), ([0, 1], [0, 0.5, 1], 7))
        body = self.sent("probe", [{"text": "a", "label": np.bool_(True), "split": "train"}])
        self.assertIs(type(body["examples"][0]["label"]), int)

    def test_what_json_cannot_say_is_refused_by_its_field(self) -> None:
        with self.assertRaisesRegex(ValueError, "^strengths: "):
            self.sent("compare", "x", layers=[1], strengths=[float("nan")])
        with self.assertRaisesRegex(TypeError, "^layers: A value of type set cannot be sent as JSON"):
            self.sent("inspect", "x", layers={1})

    def test_a_job_stands_for_its_id_everywhere(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, job("completed"))) as service:
            lab = Lab(service.url)
            found = lab.job(ID)
            lab.job(found)
            lab.wait(found)
            lab.cancel(found)
            with tempfile.TemporaryDirectory() as folder:
                lab.artifact(found, "a.npz", Path(folder) / "a.npz")
        paths = [path for _, path, _ in service.seen]
        own = f"/lab/v1/jobs/{ID}"
        self.assertEqual(paths, [own, own, own, f"{own}/cancel", f"{own}/artifacts/a.npz"])

    def test_layers_are_downloaded_once(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("NumPy is not installed")
        buffer = io.BytesIO()
        np.savez(buffer, layer_3=np.ones((1, 2, 4), np.float32))

        def answer(handler: Any, _: str, path: str, __: bytes) -> None:
            if path.endswith(".npz"):
                send(handler, 200, buffer.getvalue(), {})
            else:
                send_json(handler, 200, job("completed", result={"artifacts": ["activations.npz"]}))

        with Scripted(answer) as service:
            done = Lab(service.url).job(ID)
            first = done.layers()[3]
            first[:] = 0
            self.assertEqual(done.layers()[3].tolist(), np.ones((1, 2, 4)).tolist())
        self.assertEqual(len(service.seen), 2)


class TestKey(unittest.TestCase):
    def sent(self, **settings: Any) -> str | None:
        def answer(handler: Any, *_: Any) -> None:
            keys.append(handler.headers.get("Authorization"))
            send_json(handler, 200, {"model": "m"})

        keys: list[str | None] = []
        with Scripted(answer) as service:
            ServingModel(int(service.url.rsplit(":", 1)[1]), **settings).capabilities()
        return keys[0]

    def test_the_key_given_is_sent_else_the_environment_s(self) -> None:
        with mock.patch.dict(os.environ):
            os.environ.pop("TAPLINE_API_KEY", None)
            self.assertIsNone(self.sent())
            self.assertEqual(self.sent(api_key="given"), "Bearer given")
            os.environ["TAPLINE_API_KEY"] = "environment"
            self.assertEqual(self.sent(), "Bearer environment")
            self.assertEqual(self.sent(api_key="given"), "Bearer given")
            self.assertIsNone(self.sent(api_key=""))


class TestContract(unittest.TestCase):
    def test_names_and_defaults_are_the_contract_s(self) -> None:
        def shape(function: Any) -> list[Any]:
            parameters = list(inspect.signature(function).parameters.values())
            names = [
                f"**{p.name}"
                if p.kind is p.VAR_KEYWORD
                else p.name
                if p.default is p.empty
                else (p.name, p.default)
                for p in parameters
            ]
            return names[1:]

        self.assertEqual(shape(Lab.__init__), [("base_url", "http://127.0.0.1:8980"), ("timeout", 10)])
        self.assertEqual(shape(ServingModel.__init__), [("port", 8971), ("timeout", 75), ("api_key", None)])
        expected = {
            Lab.health: [],
            Lab.schema: [],
            Lab.jobs: [],
            Lab.submit: ["operation", "model", "**settings"],
            Lab.inspect: ["model", "prompt", "**settings"],
            Lab.compare: ["model", ("prompt", None), "**settings"],
            Lab.probe: ["model", "examples", "**settings"],
            Lab.sae: ["model", ("examples", None), ("extraction", None), "**settings"],
            Lab.features: ["model", "dictionary", "texts", "**settings"],
            Lab.extract: ["model", ("data", None), ("out", None), "**settings"],
            Lab.drift: ["model", "other", "examples", "**settings"],
            Lab.patch_sweep: ["model", ("clean", None), ("corrupted", None), "**settings"],
            Lab.explain: ["model", "prompt", "layer", "template", "marker", "**settings"],
            Lab.graph: ["model", "prompt", "**settings"],
            Lab.dictionaries: [],
            Lab.dictionary: ["name"],
            Lab.add_dictionary: [
                *["name", "source", ("layer", None), ("k", None), ("revision", None), ("point", None)],
            ],
            Lab.remove_dictionary: ["name"],
            Lab.lenses: [],
            Lab.add_lens: ["name", "source", ("revision", None)],
            Lab.remove_lens: ["name"],
            Lab.job: ["identifier"],
            Lab.wait: ["identifier", ("timeout", 1800), ("interval", 0.5)],
            Lab.cancel: ["identifier"],
            Lab.artifact: ["identifier", "name", "destination"],
            ServingModel.capabilities: [],
            ServingModel.vectors: [],
            ServingModel.probes: [],
            ServingModel.make_vector: [
                "name",
                "positive",
                "negative",
                "layers",
                ("position", "last"),
                ("method", "difference"),
            ],
            ServingModel.make_probe: ["name", "positive", "negative", "layer", ("position", "last")],
            ServingModel.put_vector: ["name", "vector", ("layer", None)],
            ServingModel.put_probe: ["name", "weight", "layer", ("bias", 0.0), ("mean", None), ("std", None)],
            ServingModel.chat: ["messages", ("tapline", None), "**request"],
            ServingModel.complete: ["prompt", ("tapline", None), "**request"],
            ServingModel.capture: ["identifier"],
            ServingModel.remove_capture: ["identifier"],
            ServingModel.put_profile: ["name", "tapline", ("description", "")],
            ServingModel.profiles: [],
            ServingModel.remove_profile: ["name"],
            ServingModel.remove_vector: ["name"],
            ServingModel.remove_probe: ["name"],
            ServingModel.inspect: ["prompt", ("layers", None), ("max_input_tokens", 128)],
        }
        for method, arguments in expected.items():
            self.assertEqual(shape(method), arguments, method.__name__)
        classes = [one for client in (Lab, ServingModel) for one in client.__mro__]
        public = [name for one in classes for name in vars(one) if not name.startswith("_")]
        self.assertEqual(sorted(public), sorted(method.__name__ for method in expected))

    def test_requests_are_the_documented_ones(self) -> None:
        def answer(handler: Any, method: str, path: str, body: bytes) -> None:
            send_json(
                handler, 200, {"jobs": []} if path == "/lab/v1/jobs" and method == "GET" else job("queued")
            )

        with Scripted(answer) as service:
            lab = Lab(service.url + "/")
            lab.health(), lab.schema(), lab.jobs(), lab.job("a/../b"), lab.cancel(ID)
            lab.sae("m", ({"text": "t", "split": "train"},), steps=3)
        self.assertEqual(
            [(method, path) for method, path, _ in service.seen],
            [
                ("GET", "/lab/v1/health"),
                ("GET", "/lab/v1/openapi.json"),
                ("GET", "/lab/v1/jobs"),
                ("GET", "/lab/v1/jobs/a%2F..%2Fb"),
                ("POST", f"/lab/v1/jobs/{ID}/cancel"),
                ("POST", "/lab/v1/jobs"),
            ],
        )
        self.assertEqual(json.loads(service.seen[4][2]), {})
        examples = [{"text": "t", "split": "train"}]
        sent = {"operation": "sae", "model": "m", "examples": examples, "steps": 3}
        self.assertEqual(json.loads(service.seen[5][2]), sent)

    def test_a_dictionary_is_asked_for_by_what_was_said_alone(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, {"dictionaries": []})) as service:
            lab = Lab(service.url)
            lab.add_dictionary("a b", Path("/x/y"), layer=0)
            self.assertEqual(lab.dictionaries(), [])
            self.assertEqual(lab.dictionary("c d"), {"dictionaries": []})
            lab.remove_dictionary("one")
            with self.assertRaisesRegex(TaplineError, "name is empty"):
                lab.add_dictionary("", "x")
        self.assertEqual(
            [(method, path) for method, path, _ in service.seen],
            [("PUT", "/lab/dictionaries/a%20b"), ("GET", "/lab/dictionaries"), ("GET", "/lab/dictionaries/c%20d"), ("DELETE", "/lab/dictionaries/one")],
        )
        self.assertEqual(json.loads(service.seen[0][2]), {"from": "/x/y", "layer": 0})

    def test_a_lens_is_asked_for_by_what_was_said_alone(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, {"lenses": []})) as service:
            lab = Lab(service.url)
            lab.add_lens("a b", Path("/x/y"))
            self.assertEqual(lab.lenses(), [])
            lab.remove_lens("one")
            with self.assertRaisesRegex(TaplineError, "name is empty"):
                lab.add_lens("", "x")
        self.assertEqual(
            [(method, path) for method, path, _ in service.seen],
            [("PUT", "/lab/lenses/a%20b"), ("GET", "/lab/lenses"), ("DELETE", "/lab/lenses/one")],
        )
        self.assertEqual(json.loads(service.seen[0][2]), {"from": "/x/y"})

    def test_numbers_that_json_has_not_are_not_sent(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 202, job("queued"))) as service:
            with self.assertRaises(ValueError):
                Lab(service.url).compare("m", "p", strengths=[float("nan")])
            with self.assertRaises(TypeError):
                Lab(service.url).compare("m", "p", strengths={1, 2})
            self.assertEqual(service.seen, [])

    def test_addresses_that_are_none_are_refused(self) -> None:
        for url in ("", "127.0.0.1:8980", "https://127.0.0.1", "http://127.0.0.1:8980/lab/v1", "http://a@b"):
            with self.assertRaisesRegex(TaplineError, "must look like"):
                Lab(url)


class TestServing(unittest.TestCase):
    def test_inspect_looks_the_model_up_first(self) -> None:
        def answer(handler: Any, method: str, path: str, body: bytes) -> None:
            send_json(handler, 200, {"model": "the one"} if method == "GET" else {"tokens": []})

        with Scripted(answer) as service:
            result = ServingModel(service.port).inspect("p", layers=range(2), max_input_tokens=9)
        self.assertEqual(result, {"tokens": []})
        self.assertEqual([path for _, path, _ in service.seen], ["/lab/capabilities", "/lab/activations"])
        sent = {"model": "the one", "prompt": "p", "layers": [0, 1], "max_input_tokens": 9}
        self.assertEqual(json.loads(service.seen[1][2]), sent)

    def test_without_layers_the_service_s_default_applies(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, {"model": "m"})) as service:
            ServingModel(port=service.port).inspect("p")
        self.assertEqual(
            json.loads(service.seen[1][2]), {"model": "m", "prompt": "p", "max_input_tokens": 128}
        )

    def test_connecting_waits_while_the_server_loads_its_model(self) -> None:
        loading = {"error": {"message": "The model is loading; retry in a moment."}}
        loaded = {"model": "m", "n_layer": 2, "n_embd": 8, "serving_activations": True}

        def answer(handler: BaseHTTPRequestHandler, *_: Any) -> None:
            send_json(handler, *((503, loading) if len(service.seen) < 3 else (200, loaded)))

        with Scripted(answer) as service:
            self.assertEqual(connect(service.port).name, "m")
            self.assertEqual(len(service.seen), 3)
        with Scripted(lambda handler, *_: send_json(handler, 503, loading)) as service:
            with self.assertRaisesRegex(TaplineError, "^The model is loading; retry in a moment.$"):
                connect(service.port, timeout=1)
            self.assertGreater(len(service.seen), 1)
        with Scripted(lambda handler, *_: send_json(handler, 404, {"error": "no"})) as service:
            with self.assertRaisesRegex(TaplineError, "^no$"):
                connect(service.port)
            self.assertEqual(len(service.seen), 1)

    def test_a_server_without_a_model_is_an_error(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, {"model": None})) as service:
            with self.assertRaisesRegex(TaplineError, "no model"):
                ServingModel(service.port).inspect("p")
        self.assertEqual(len(service.seen), 1)


class TestWaiting(unittest.TestCase):
    def wait(self, *answers: dict[str, Any], **options: Any) -> Any:
        left = list(answers)
        with Scripted(lambda h, *_: send_json(h, 200, left.pop(0) if len(left) > 1 else left[0])) as service:
            return Lab(service.url).wait(ID, **{"interval": 0.01, **options})

    def test_it_looks_until_the_job_has_completed(self) -> None:
        done = self.wait(job("queued"), job("running"), job("completed", result={"x": 1}))
        self.assertEqual(done["result"], {"x": 1})

    def test_it_raises_for_jobs_that_ended_otherwise(self) -> None:
        for status in ("failed", "cancelled", "interrupted"):
            with self.assertRaisesRegex(TaplineError, "The reason"):
                self.wait(job("running"), job(status, error="The reason."))
        with self.assertRaisesRegex(TaplineError, f"{ID} was interrupted"):
            self.wait(job("interrupted"))

    def test_the_deadline_raises_and_cancels_nothing(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, job("running"))) as service:
            # As often as the machine needs to look twice within its time.
            for timeout in (0.1 * 2**doubled for doubled in range(12)):
                service.seen.clear()
                with self.assertRaisesRegex(TimeoutError, f"still running after {timeout:g} s"):
                    Lab(service.url).wait(ID, timeout=timeout, interval=0.03)
                if len(service.seen) > 1:
                    break
        self.assertGreater(len(service.seen), 1)
        self.assertEqual({method for method, _, _ in service.seen}, {"GET"})

    def test_it_sleeps_the_interval_between_two_looks(self) -> None:
        with mock.patch("tapline_lab._lab.time.sleep") as sleep:
            self.wait(job("queued"), job("running"), job("completed"), interval=7)
        self.assertEqual(sleep.call_args_list, [mock.call(7), mock.call(7)])

    def test_a_line_of_progress_on_a_terminal_only(self) -> None:
        left = [job("queued"), job("running"), job("completed")]
        with Scripted(lambda handler, *_: send_json(handler, 200, left.pop(0))) as service:
            program = (
                f"from tapline_lab import Lab; Lab({service.url!r}).wait({ID!r}, interval=0.01); print('done')"
            )
            terminal, end = pty.openpty()
            ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=end)
            os.close(end)
            shown = read_all(terminal)
        self.assertEqual(ended.stdout, b"done\n")
        self.assertRegex(shown, r"\rinspect 01234567 queued: capture 3/8 \(\d+ s\)")
        self.assertRegex(shown, r"running: capture 3/8")
        self.assertRegex(shown, r"\r +\r$")

        with mock.patch("sys.stderr", io.StringIO()) as stderr:
            self.wait(job("queued"), job("completed"))
        self.assertEqual(stderr.getvalue(), "")


def read_all(descriptor: int) -> str:
    parts = b""
    try:
        while part := os.read(descriptor, 4096):
            parts += part
    except OSError:
        pass  # Linux says so when the other end is closed
    os.close(descriptor)
    return parts.decode()


class TestFailures(unittest.TestCase):
    def test_what_is_not_json_is_an_error(self) -> None:
        with Scripted(lambda handler, *_: send(handler, 200, b"<html>", {})) as service:
            with self.assertRaisesRegex(TaplineError, "/lab/v1/health is not JSON"):
                Lab(service.url).health()

    def test_what_is_no_job_is_an_error(self) -> None:
        for body in ([], 7, {}, {"jobs": []}):
            with Scripted(lambda handler, *_, body=body: send_json(handler, 200, body)) as service:
                with self.assertRaises(TaplineError):
                    Lab(service.url).wait(ID)

    def test_errors_of_either_form_and_of_none(self) -> None:
        bodies = {
            b'{"error": "A sentence."}': "A sentence.",
            b'{"error": {"message": "Another."}}': "Another.",
            b"<html>gateway</html>": "/lab/v1/health returned status 503.",
            b'{"error": {"message": 7}}': "/lab/v1/health returned status 503.",
            b"[]": "/lab/v1/health returned status 503.",
        }
        for body, sentence in bodies.items():
            with Scripted(lambda handler, *_, body=body: send(handler, 503, body, {})) as service:
                with self.assertRaises(TaplineError) as caught:
                    Lab(service.url).health()
            self.assertEqual((str(caught.exception), caught.exception.status), (sentence, 503))

    def test_who_asks_is_said(self) -> None:
        def answer(handler: Any, *_: Any) -> None:
            send_json(handler, 200, {"agent": handler.headers["User-Agent"]})

        with Scripted(answer) as service:
            self.assertEqual(Lab(service.url).health(), {"agent": "tapline-lab/0.3.0"})

    def test_redirects_are_not_followed(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, {})) as other:
            elsewhere = {"Location": other.url + "/lab/v1/health"}
            with Scripted(lambda handler, *_: send(handler, 302, b"", elsewhere)) as service:
                with self.assertRaises(TaplineError) as caught:
                    Lab(service.url).health()
            self.assertEqual(caught.exception.status, 302)
            self.assertEqual(other.seen, [])

    def test_a_service_that_is_not_there(self) -> None:
        with Scripted(lambda *_: None) as service:
            pass
        with self.assertRaisesRegex(urllib.error.URLError, "nothing listens at http://127.0.0.1"):
            Lab(service.url).health()

    def test_a_service_that_says_nothing(self) -> None:
        over = threading.Event()
        with Scripted(lambda *_: over.wait(600) and None) as service:
            with self.assertRaisesRegex(TimeoutError, "No response from .* for 0.1 s"):
                Lab(service.url, timeout=0.1).health()
            with self.assertRaises(TimeoutError):
                Lab(service.url).wait(ID, timeout=0.1)
            over.set()

    def test_a_service_that_hangs_up(self) -> None:
        with Scripted(lambda *_: None) as service:
            with self.assertRaisesRegex(urllib.error.URLError, "broke"):
                Lab(service.url).health()

    def test_a_download_that_ends_early_leaves_nothing(self) -> None:
        with Scripted(lambda handler, *_: send(handler, 200, b"half", {"Content-Length": "8"})) as service:
            with tempfile.TemporaryDirectory() as folder:
                destination = Path(folder, "a")
                destination.write_text("old")
                with self.assertRaisesRegex(urllib.error.ContentTooShortError, "4 of 8"):
                    Lab(service.url).artifact(ID, "a b", destination)
                self.assertEqual((destination.read_text(), os.listdir(folder)), ("old", ["a"]))
        self.assertEqual(service.seen[0][1], f"/lab/v1/jobs/{ID}/artifacts/a%20b")

    def test_a_named_pipe_is_written_to_and_stays_one(self) -> None:
        with Scripted(lambda handler, *_: send(handler, 200, b"bytes", {})) as service:
            with tempfile.TemporaryDirectory() as folder:
                pipe = Path(folder, "pipe")
                os.mkfifo(pipe)
                # Open for reading and writing, so that neither side waits for the other.
                reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
                try:
                    Lab(service.url).artifact(ID, "a", pipe)
                    self.assertEqual(os.read(reader, 100), b"bytes")
                finally:
                    os.close(reader)
                self.assertTrue(pipe.is_fifo())
                self.assertEqual(os.listdir(folder), ["pipe"])

    def test_a_destination_that_cannot_be_written_is_the_system_s_error(self) -> None:
        with Scripted(lambda handler, *_: send(handler, 200, b"x", {})) as service:
            with self.assertRaises(FileNotFoundError):
                Lab(service.url).artifact(ID, "a", "/nowhere/at/all")

    def test_arrays_of_a_job_that_has_none_yet(self) -> None:
        with Scripted(lambda handler, *_: send_json(handler, 200, job("running"))) as service:
            with mock.patch.dict(sys.modules, {"tapline_lab.arrays": mock.Mock()}):
                with self.assertRaisesRegex(TaplineError, "is running"):
                    Lab(service.url).job(ID).layers()
