"""Forward calls on the demo model, compared with float64 arithmetic here and with the server's own answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import tapline_lab as tl
from tapline_lab import TaplineError

try:
    import numpy as np
except ImportError:
    np = None

PORT = int(os.environ["TAPLINE_TEST_SERVING_PORT"])
TEXTS = ["The capital of France is", "Tom"]


def shared_files(model: tl.Model) -> list[Path]:
    """What this server's folder in shared memory holds."""
    file = Path(model._http.quick("/lab/forward", {"sequences": ["Tom"], "logits": "last", "transfer": "file"})["path"])
    file.unlink()
    return list(file.parent.iterdir())


def running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@unittest.skipIf(np is None, "NumPy is not installed")
class TestForward(unittest.TestCase):
    def setUp(self) -> None:
        self.model = tl.connect(PORT)

    def test_shapes_of_a_batch(self) -> None:
        tokens = np.array([self.model.tokenize(TEXTS[0]), self.model.tokenize("The capital of Egypt is")])
        run = self.model.run(tokens, ["blocks.*.hook_out", "attention.2", "head_out.1"], logits="all")
        batch, length = tokens.shape
        self.assertEqual(run.cache["block_out.5"].shape, (batch, length, 128))
        self.assertIs(run.cache["blocks.5.hook_resid_post"], run.cache["block_out.5"])
        self.assertEqual(run.cache["blocks.2.attn.hook_pattern"].shape, (batch, 4, length, length))
        self.assertEqual(run.cache["blocks.1.attn.hook_z"].shape, (batch, length, 4, 32))
        self.assertEqual(run.cache.stack().shape, (8, batch, length, 128))
        self.assertEqual(run.logits.shape[:2], (batch, length))
        np.testing.assert_allclose(run.cache["attention.2"].sum(-1), 1, atol=1e-5)
        np.testing.assert_array_equal(np.stack(run.tokens), tokens)
        self.assertEqual(run.cache["block_out.5"].dtype, np.float32)
        self.assertEqual(shared_files(self.model), [])

    def test_sequences_of_different_lengths_are_lists(self) -> None:
        run = self.model.run(TEXTS, ["block_out.0", "attention.1"], logits="all")
        lengths = [len(tokens) for tokens in run.tokens]
        self.assertNotEqual(*lengths)
        self.assertEqual([len(rows) for rows in run.cache["block_out.0"]], lengths)
        self.assertEqual([len(rows) for rows in run.logits], lengths)
        self.assertEqual([rows.shape for rows in run.cache["attention.1"]], [(4, n, n) for n in lengths])
        alone = self.model.run(TEXTS[1], "block_out.0", logits="all")
        # Attention over other cells rounds differently: the memory is F16, and one row is very long.
        packed, single = run.cache["block_out.0"][1], alone.cache["block_out.0"][0]
        self.assertLess(np.linalg.norm(packed - single), 2e-3 * np.linalg.norm(single))
        with self.assertRaisesRegex(ValueError, "differ in length"):
            run.cache.stack()

    def test_loss_is_the_cross_entropy_of_the_next_tokens(self) -> None:
        run = self.model.run(TEXTS, logits="all")
        expected = []
        for logits, tokens in zip(run.logits, run.tokens):
            for row, token in zip(logits[:-1].astype(float), tokens[1:]):
                expected.append(np.log(np.exp(row).sum()) - row[token])
        self.assertAlmostEqual(run.loss(), float(np.mean(expected)), places=6)
        self.assertEqual([len(one) for one in run.loss(per_token=True)], [len(t) - 1 for t in run.tokens])
        with self.assertRaisesRegex(ValueError, 'logits="all", got \'last\''):
            self.model.run(TEXTS).loss()

    def test_the_best_logit_is_the_token_the_server_generates(self) -> None:
        run = self.model.run(TEXTS[0])
        [answer] = self.model.complete(TEXTS[0], max_tokens=1, temperature=0)
        self.assertEqual(self.model.to_string([int(run.logits[0, -1].argmax())]), answer["text"])

    def test_logit_difference_and_divergence(self) -> None:
        plain = self.model.run(TEXTS[0])
        other = self.model.run(TEXTS[0], edits=[tl.ablate("blocks.3.mlp.hook_out")])
        row = plain.logits[0, -1].astype(float)
        self.assertAlmostEqual(float(plain.logit_diff(5, 9)[0]), row[5] - row[9], places=4)
        p, q = (np.exp(r - r.max()) / np.exp(r - r.max()).sum() for r in (row, other.logits[0, -1].astype(float)))
        self.assertAlmostEqual(float(plain.kl(other)[0]), float((p * np.log(p / q)).sum()), places=6)
        self.assertEqual(float(plain.kl(plain)[0]), 0)

    def test_edits_change_the_rows_they_name(self) -> None:
        vector = np.sin(np.arange(128.0))
        plain = self.model.run(TEXTS, "block_out.4")
        edited = self.model.run(
            TEXTS,
            "block_out.4",
            edits=[tl.add("blocks.4.hook_out", vector, 2, positions=[-1], sequences=[0])],
        )
        before, after = (run.cache["block_out.4"] for run in (plain, edited))
        np.testing.assert_array_equal(after[0][:-1], before[0][:-1])
        np.testing.assert_allclose(after[0][-1], before[0][-1] + 2 * vector, atol=1e-3)
        np.testing.assert_array_equal(after[1], before[1])
        self.assertEqual(edited.effects[0][0]["rows"], 1)
        self.assertAlmostEqual(edited.effects[0][0]["change_norm"], 2 * float(np.linalg.norm(vector)), places=3)
        replaced = self.model.run(TEXTS[0], "block_out.4", edits=[tl.set_to("block_out.4", vector)])
        np.testing.assert_allclose(replaced.cache["block_out.4"][0][-1], vector, atol=1e-4)
        halved = self.model.run(TEXTS[0], "mid.4", edits=[tl.scale("mid.4", 0.5)])
        whole = self.model.run(TEXTS[0], "mid.4")
        np.testing.assert_allclose(halved.cache["mid.4"], whole.cache["mid.4"] / 2, atol=1e-4)

    def test_token_strings_join_to_the_text(self) -> None:
        run = self.model.run(TEXTS, add_special_tokens=False)
        for sequence, text in enumerate(TEXTS):
            found = run.str_tokens(sequence)
            self.assertEqual("".join(found), text)
            self.assertEqual(len(found), len(run.tokens[sequence]))
        self.assertEqual(run.str_tokens()[-1], " is")

    def test_half_precision_and_positions(self) -> None:
        whole = self.model.run(TEXTS, "block_out.*")
        half = self.model.run(TEXTS, "block_out.*", positions=[-1], precision="f16")
        self.assertEqual(half.cache["block_out.7"].dtype, np.float16)
        self.assertEqual(half.cache["block_out.7"].shape, (2, 1, 128))
        last = np.stack([rows[-1] for rows in whole.cache["block_out.7"]])
        np.testing.assert_allclose(half.cache["block_out.7"][:, 0], last, rtol=2e-3, atol=1e-2)

    def test_a_server_whose_files_cannot_be_opened_streams(self) -> None:
        from tapline_lab import _forward

        expected = self.model.run(TEXTS, "block_out.*", logits="all")
        mapped, _forward.mapped = _forward.mapped, lambda path: os.unlink(path)
        try:
            run = self.model.run(TEXTS, "block_out.*", logits="all")
        finally:
            _forward.mapped = mapped
        for name in expected.cache:
            for one, other in zip(run.cache[name], expected.cache[name]):
                np.testing.assert_array_equal(one, other)
        self.assertFalse(self.model._files)

    def test_refusals_are_the_services_sentences(self) -> None:
        for options, sentence in [
            ({"capture": "blocks.99.hook_out"}, "Layer 99 does not exist"),
            ({"capture": "hook_nothing"}, '"hook_nothing" is not a point of this model'),
            ({"texts": []}, "sequences"),
            ({"edits": [tl.add("block_out.2", [1.0])]}, "1 values"),
            ({"logits": [99]}, "Position 99 does not exist"),
        ]:
            with self.assertRaisesRegex(TaplineError, sentence):
                self.model.run(**{"texts": TEXTS, "capture": "block_out.0", **options})
        with self.assertRaisesRegex(TypeError, "An edit has no position."):
            tl.scale("block_out.2", 2, position=3)
        with self.assertRaisesRegex(KeyError, "mid.0 was not captured; this run has block_out.0"):
            self.model.run(TEXTS, "block_out.0").cache["mid.0"]

    def test_many_threads_share_a_model(self) -> None:
        expected = self.model.run(TEXTS[0], "block_out.6").cache["block_out.6"]
        found: list[object] = []

        def work() -> None:
            for _ in range(8):
                found.append(self.model.run(TEXTS[0], "block_out.6").cache["block_out.6"])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 64)
        for rows in found:
            np.testing.assert_array_equal(rows, expected)
        self.assertEqual(shared_files(self.model), [])

    def test_the_lens_of_a_run_ends_with_the_models_own_answer(self) -> None:
        run = self.model.run(TEXTS[0], "block_out.*", logits="last")
        svg = run.lens().svg
        answer = self.model.to_string([int(run.logits[0, -1].argmax())]).strip()
        rows = svg.split("block 7<")[1].split("block 6<")[0]
        self.assertIn(answer, rows)
        self.assertEqual(run.cache.layers(), list(range(8)))
        html = run._repr_html_()
        self.assertIn("<svg", html)
        self.assertIn("float32 [1, 6, 128]", html)
        self.assertNotIn("<svg", self.model.run(TEXTS[0], "attn_out.2")._repr_html_())
        with self.assertRaisesRegex(TaplineError, 'capture="block_out'):
            self.model.run(TEXTS[0], "attn_out.2").lens()

    def test_the_head_gives_the_models_logits(self) -> None:
        from tapline_lab._lens import head

        run = self.model.run(TEXTS[0], "block_out.7", logits="all")
        found = head(self.model, run.cache["block_out.7"][0])
        self.assertLess(np.linalg.norm(found - run.logits[0]), 0.02 * np.linalg.norm(run.logits[0]))

    def test_generate_returns_states_and_effects_of_edits(self) -> None:
        plain = self.model.generate(TEXTS[0], 4, states=[3, 5])
        self.assertEqual(plain.text, self.model.complete(TEXTS[0], max_tokens=4, temperature=0)[0]["text"])
        self.assertEqual(plain.states[5].shape[1], 128)
        self.assertEqual(len(plain.rows), len(plain.states[3]))
        vector = np.sin(np.arange(128.0))
        edited = self.model.generate(TEXTS[0], 4, edits=[tl.add("blocks.4.hook_out", vector, 3)], states=[5])
        [effect] = edited.interventions
        self.assertEqual((effect["layer"], effect["kind"]), (4, "steer"))
        self.assertAlmostEqual(effect["mean_change_length"], 3 * float(np.linalg.norm(vector)), places=2)
        self.assertGreater(float(np.abs(edited.states[5][0] - plain.states[5][0]).max()), 0.01)
        self.assertEqual([one for one in self.model.vectors() if one["name"].startswith("tmp-")], [])
        with self.assertRaisesRegex(ValueError, "sequences"):
            self.model.generate(TEXTS[0], edits=[tl.scale("mid.2", 2, sequences=[0])])
        chat = self.model.generate([{"role": "user", "content": "Hello"}], 3, watch={"layers": [2], "norms": True})
        self.assertEqual([list(token["norms"]) for token in chat.tokens], [["2"]] * len(chat.tokens))
        # At another point: the activations that a separate pass has there.
        inner = self.model.generate(TEXTS[0], 2, watch={"point": "head_out", "heads": [2]}, states=[3])
        whole = self.model.run(TEXTS[0], "blocks.3.attn.hook_z").cache["blocks.3.attn.hook_z"][0]
        self.assertEqual(inner.states[3].shape[1], 32)
        np.testing.assert_allclose(inner.states[3][0], whole[-1][2], rtol=1e-3, atol=1e-4)

    def test_vectors_and_probes_come_back_as_arrays(self) -> None:
        positive = [f"The {noun} sat" for noun in ("cat", "dog", "cow", "hen", "pig")]
        negative = [f"Two plus {number}" for number in ("one", "two", "six", "ten", "four")]
        try:
            found = self.model.vector("py-animals", positive, negative, [5])
            ends = [
                np.stack([rows[-1] for rows in self.model.run(texts, "block_out.5").cache["block_out.5"]]).mean(0)
                for texts in (positive, negative)
            ]
            difference = ends[0] - ends[1]
            self.assertEqual(list(found), [5])
            self.assertLess(np.linalg.norm(found[5] - difference), 0.02 * np.linalg.norm(difference))
            probe = self.model.probe("py-animals", positive, negative, 5)
            rows = self.model.run([positive[0], negative[0]], "block_out.5").cache["block_out.5"]
            scores = [float(probe.probabilities(one[-1])) for one in rows]
            self.assertGreater(scores[0], 0.5)
            self.assertLess(scores[1], 0.5)
        finally:
            self.model.remove_vector("py-animals")
            self.model.remove_probe("py-animals")

    def test_a_killed_client_leaves_no_file(self) -> None:
        script = (
            "import os, signal, tapline_lab as tl\n"
            f"model = tl.connect({PORT})\n"
            "runs = [model.run('The capital of France is', 'block_out.*', logits='all') for _ in range(8)]\n"
            "print(len(runs), flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        child = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual((child.returncode, child.stdout), (-signal.SIGKILL, "8\n"))
        self.assertEqual(shared_files(self.model), [])

    def test_an_interrupted_call_ends_and_leaves_no_file(self) -> None:
        script = (
            "import os, signal, threading, tapline_lab as tl\n"
            f"model = tl.connect({PORT})\n"
            "expected = model.run('Tom').logits.copy()\n"
            "long = [list(range(1, 200))] * 64\n"
            "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try:\n"
            "    while True:\n"
            "        model.run(long, 'block_out.*', logits='all')\n"
            "except KeyboardInterrupt:\n"
            "    print((model.run('Tom').logits == expected).all(), flush=True)\n"
        )
        child = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual((child.returncode, child.stdout), (0, "True\n"))
        # A result that was ready just before stays until the server deletes it, after 30 s.
        for _ in range(600):
            if shared_files(self.model) == []:
                return
            threading.Event().wait(0.1)
        self.fail("a file is left")

    def test_a_killed_server_ends_a_call_in_one_sentence(self) -> None:
        with tl.load("demo", quiet=True) as model:
            folder = Path(
                model._http.quick("/lab/forward", {"sequences": ["Tom"], "logits": "last", "transfer": "file"})["path"]
            ).parent
            long = [list(range(1, 200))] * 64
            failures: list[BaseException] = []

            def work() -> None:
                try:
                    while True:
                        model.run(long, "block_out.*", logits="all")
                except Exception as error:
                    failures.append(error)

            thread = threading.Thread(target=work)
            thread.start()
            os.kill(int(folder.name.split("-")[2]), signal.SIGKILL)  # the serving process
            thread.join(120)
            self.assertFalse(thread.is_alive(), "the call hangs")
            self.assertRegex(str(failures[0]), "broke|listens|no model|ended|restart|unavailable|[Ss]tarting|[Ll]oading")
            self.assertNotIn("\n", str(failures[0]))
            # The next serving process deletes what the killed one left.
            for _ in range(100):
                try:
                    model.run("Tom", logits="last")
                    break
                except (TaplineError, OSError):
                    threading.Event().wait(0.2)
            self.assertEqual(shared_files(model), [])
            self.assertFalse(folder.exists())

    def test_a_model_that_cannot_be_loaded_ends_in_one_sentence(self) -> None:
        with self.assertRaisesRegex(TaplineError, "^The server did not start: .*nothing-here"):
            tl.load("/nothing-here.gguf", quiet=True)

    def test_a_loaded_server_ends_with_its_process(self) -> None:
        script = (
            "import tapline_lab as tl, os, sys\n"
            "model = tl.load('demo', quiet=True)\n"
            "print(model.run('Tom').logits.shape[0], model._server.pid, flush=True)\n"
            "sys.stdin.read()\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        count, pid = child.stdout.readline().split()
        self.assertEqual(count, "1")
        child.send_signal(signal.SIGKILL)
        child.communicate()
        gone = threading.Event()
        for _ in range(300):
            if not running(pid):
                break
            gone.wait(0.1)
        self.assertFalse(running(pid), "the server outlived its process")


if __name__ == "__main__":
    unittest.main()
