"""The Lab client against `tapline lab`, with the demo model."""

from __future__ import annotations

import functools
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tapline_lab import Lab, TaplineError

try:
    import numpy as np
except ImportError:
    np = None

URL = os.environ["TAPLINE_TEST_LAB"]
PROMPT = "The capital of France is"
EXAMPLES = [
    {"text": f"{country} number {index}", "label": label, "split": split}
    for split, names in (("train", ("France", "Japan")), ("test", ("Peru", "Chad")))
    for label, country in enumerate(names)
    for index in range(2)
]
needs_numpy = unittest.skipIf(np is None, "NumPy is not installed")


class TestLab(unittest.TestCase):
    def setUp(self) -> None:
        self.lab = Lab(URL)

    def test_health_and_schema(self) -> None:
        health = self.lab.health()
        self.assertEqual(health["status"], "ok")
        self.assertEqual(health["operations"], ["inspect", "compare", "probe", "sae", "features", "extract", "drift", "patch_sweep", "explain", "graph"])
        self.assertEqual(health["limits"]["layers"], 8)
        schema = self.lab.schema()
        self.assertTrue(schema["openapi"].startswith("3."))
        self.assertIn("/lab/v1/jobs", schema["paths"])

    def test_inspect_submits_and_wait_gives_the_result(self) -> None:
        job = self.lab.inspect("demo", PROMPT, layers=[0, 3])
        self.assertRegex(job["id"], "^[0-9a-f]{32}$")
        self.assertIn(job["status"], ("queued", "running"))
        self.assertEqual(job["operation"], "inspect")
        done = self.lab.wait(job["id"], interval=0.05)
        self.assertEqual(done["status"], "completed")
        self.assertEqual(done["config"]["max_input_tokens"], 256)
        self.assertEqual([layer["layer"] for layer in done["result"]["layers"]], [0, 3])
        self.assertEqual(len(done["result"]["next_tokens"]), 5)
        self.assertEqual(self.lab.job(job["id"]), done)
        listed = self.lab.jobs()
        self.assertIn(job["id"], [summary["id"] for summary in listed])
        self.assertNotIn("result", listed[0])
        self.assertEqual(listed, sorted(listed, key=lambda summary: -summary["created"]))

    def test_compare(self) -> None:
        job = self.lab.compare("demo", PROMPT, layers=[5], strengths=[1, 0], max_tokens=4)
        result = self.lab.wait(job, interval=0.05)["result"]
        self.assertEqual([trial["strength"] for trial in result["trials"]], [1, 0])
        self.assertEqual(result["trials"][0]["delta"], 0)

    def test_submit_is_what_the_shortcuts_do(self) -> None:
        job = self.lab.submit("inspect", "demo", prompt=PROMPT, seed=7)
        done = self.lab.wait(job, interval=0.05)
        self.assertEqual(done["config"], {**done["config"], "operation": "inspect", "seed": 7})

    def test_a_refused_submission_is_the_service_s_sentence(self) -> None:
        with self.assertRaises(TaplineError) as caught:
            self.lab.inspect("demo", PROMPT, layers=[256])
        self.assertEqual(caught.exception.status, 400)
        self.assertRegex(str(caught.exception), "255")
        with self.assertRaisesRegex(TaplineError, "promt"):
            self.lab.inspect("demo", PROMPT, promt=PROMPT)
        with self.assertRaises(TaplineError):
            self.lab.submit("look", "demo", prompt=PROMPT)

    def test_an_unknown_job_is_an_error(self) -> None:
        for call in (self.lab.job, self.lab.cancel, self.lab.wait):
            with self.assertRaises(TaplineError) as caught:
                call("0" * 32)
            self.assertEqual(caught.exception.status, 404)
        with self.assertRaises(TaplineError):
            self.lab.job("../health")
        with self.assertRaises(TaplineError):
            self.lab.job("")

    def test_waiting_for_a_job_that_fails_raises_its_error(self) -> None:
        job = self.lab.inspect("demo", PROMPT, layers=[77])
        with self.assertRaisesRegex(TaplineError, "77") as caught:
            self.lab.wait(job["id"], interval=0.05)
        self.assertEqual(caught.exception.job["status"], "failed")
        self.assertEqual(caught.exception.job["error"], str(caught.exception))

    def test_the_deadline_of_a_wait_leaves_the_job_alone_and_cancel_ends_it(self) -> None:
        long = self.lab.compare(
            "demo", PROMPT, prompts=[f"{PROMPT} {index}" for index in range(32)], max_tokens=128
        )
        queued = self.lab.inspect("demo", PROMPT)
        with self.assertRaises(TimeoutError):
            self.lab.wait(queued["id"], timeout=0)
        self.assertIn(self.lab.job(queued["id"])["status"], ("queued", "running", "completed"))
        for job in (long, queued):
            self.assertIn(self.lab.cancel(job["id"])["status"], ("running", "cancelled", "completed"))
        with self.assertRaisesRegex(TaplineError, "cancelled") as caught:
            self.lab.wait(long["id"], interval=0.05)
        self.assertEqual(caught.exception.job["status"], "cancelled")

    def test_an_artifact_overwrites_its_destination(self) -> None:
        job = self.lab.wait(self.lab.inspect("demo", PROMPT), interval=0.05)
        with tempfile.TemporaryDirectory() as folder:
            destination = Path(folder, "a.npz")
            destination.write_text("old")
            path = self.lab.artifact(job["id"], "activations.npz", str(destination))
            self.assertEqual(path, destination)
            self.assertEqual(destination.read_bytes()[:2], b"PK")
            with self.assertRaises(TaplineError) as caught:
                self.lab.artifact(job["id"], "worker.log", destination)
            self.assertEqual(caught.exception.status, 404)
            self.assertEqual(destination.read_bytes()[:2], b"PK")
            self.assertEqual(os.listdir(folder), ["a.npz"])

    def test_a_path_reaches_the_service_absolute(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            job = self.lab.inspect(Path(os.path.relpath(folder), "absent.gguf"), PROMPT)
            self.assertEqual(job["model"], str(Path(folder, "absent.gguf")))
            with self.assertRaisesRegex(TaplineError, "absent.gguf"):
                self.lab.wait(job, interval=0.05)

    def test_proxies_of_the_environment_are_not_asked(self) -> None:
        with mock.patch.dict(os.environ, {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}):
            self.assertEqual(Lab(URL).health()["status"], "ok")

    @needs_numpy
    def test_layers_are_what_the_result_tells_the_norms_of(self) -> None:
        job = self.lab.wait(self.lab.inspect("demo", PROMPT, layers=np.arange(2)), interval=0.05)
        layers = job.layers()
        self.assertEqual(list(layers), [0, 1])
        for entry in job["result"]["layers"]:
            array = layers[entry["layer"]]
            self.assertEqual(array.dtype, np.float32)
            self.assertEqual(array.shape[:2], (1, len(job["result"]["tokens"])))
            np.testing.assert_allclose(np.linalg.norm(array[0], axis=-1), entry["norms"], rtol=1e-5)
        with self.assertRaisesRegex(TaplineError, "is of operation inspect, not probe"):
            job.probes()

    @needs_numpy
    def test_probes_give_the_report_s_scores(self) -> None:
        job = self.lab.wait(self.lab.probe("demo", EXAMPLES, layers=[2]), interval=0.05)
        report = job["result"]["reports"][0]
        probe = job.probes()[2]
        scores = [score for score in report["scores"] if score["split"] == "test"]
        rows = final_activations([score["text"] for score in scores], 2)
        expected = [score["score"] for score in scores]
        # The job packs its texts, which moves block outputs by up to 1e-3: see docs/contributing/verification.md.
        np.testing.assert_allclose(probe.probabilities(rows), expected, atol=0.01)

    @needs_numpy
    def test_row_scores_average_to_the_texts_scores(self) -> None:
        job = self.lab.wait(self.lab.probe("demo", EXAMPLES, layers=[2], rows="all"), interval=0.05)
        result = job["result"]
        self.assertEqual(result["rows"], "all")
        report = result["reports"][0]
        rows = job.row_scores()[2]
        texts = [float(rows.score[rows.text == index].mean()) for index in range(len(EXAMPLES))]
        np.testing.assert_allclose(texts, [score["score"] for score in report["scores"]], atol=1e-12)
        by_row = report["by_row"]
        self.assertEqual(by_row["train_size"] + by_row["test_size"], len(rows.score))
        self.assertGreater(int(rows.token.min()), 0)
        self.assertEqual(list(job.probes()), [2])

    @needs_numpy
    def test_autoencoders_give_the_report_s_activations(self) -> None:
        job = self.lab.wait(self.lab.sae("demo", EXAMPLES, layers=[2], features=16, steps=30), interval=0.05)
        report = job["result"]["reports"][0]
        autoencoder = job.autoencoders()[2]
        checked = 0
        for feature in report["features"]:
            for example in feature["examples"]:
                row = final_activations([example["text"]], 2)
                value = autoencoder.encode(row)[0, feature["feature"]]
                np.testing.assert_allclose(value, example["activation"], rtol=0.01, atol=0.01)
                checked += 1
        self.assertGreater(checked, 0)
        held_out = final_activations([e["text"] for e in EXAMPLES if e["split"] == "test"], 2)
        standard = (held_out - autoencoder.mean) / autoencoder.scale
        rebuilt = (autoencoder.decode(autoencoder.encode(held_out)) - autoencoder.mean) / autoencoder.scale
        mse = float(np.mean((standard - rebuilt) ** 2))
        np.testing.assert_allclose(mse, report["held_out_mse"], rtol=0.01)


@functools.cache
def final_activation(text: str, layer: int) -> object:
    lab = Lab(URL)
    return lab.wait(lab.inspect("demo", text, layers=[layer]), interval=0.05).layers()[layer][0, -1]


def final_activations(texts: list[str], layer: int) -> object:
    return np.stack([final_activation(text, layer) for text in texts])
