"""The ServingModel client against `tapline serve`, with the demo model."""

from __future__ import annotations

import os
import unittest

from tapline_lab import ServingModel, TaplineError

try:
    import numpy as np
except ImportError:
    np = None

needs_numpy = unittest.skipIf(np is None, "NumPy is not installed")

PORT = int(os.environ["TAPLINE_TEST_SERVING_PORT"])


class TestServingModel(unittest.TestCase):
    def setUp(self) -> None:
        self.model = ServingModel(PORT)

    def test_capabilities(self) -> None:
        capabilities = self.model.capabilities()
        self.assertTrue(capabilities["serving_activations"])
        self.assertEqual(capabilities["max_layers"], 4)
        self.assertIsInstance(capabilities["model"], str)

    def test_inspect_measures_the_model_that_serves(self) -> None:
        result = self.model.inspect("The capital of France is", layers=[3, 7])
        self.assertEqual([layer["layer"] for layer in result["layers"]], [3, 7])
        self.assertEqual(len(result["layers"][0]["norms"]), len(result["tokens"]))
        self.assertEqual(len(result["next_tokens"]), 5)
        self.assertEqual(len(self.model.inspect("One")["layers"]), 1)

    @needs_numpy
    def test_own_vectors_and_probes_are_stored_and_act(self) -> None:
        width = self.model.capabilities()["n_embd"]
        own = np.zeros(width, np.float64)
        own[3] = 2.0
        stored = self.model.put_vector("py-own", own, layer=5)
        self.assertEqual([(at["layer"], at["length"]) for at in stored["layers"]], [(5, 2.0)])
        both = self.model.put_vector("py-own", {2: own, 4: own})
        self.assertEqual([at["layer"] for at in both["layers"]], [2, 4])
        weight = np.full(width, 0.5, np.float32)
        self.assertEqual(self.model.put_probe("py-own", weight, 5, bias=-1.0)["layer"], 5)
        with self.assertRaisesRegex(ValueError, "layer is required for a single array"):
            self.model.put_vector("py-own", own)
        with self.assertRaisesRegex(ValueError, "layer 1 must be a one-dimensional array of finite numbers, got shape \\(2, 3\\)"):
            self.model.put_vector("py-own", np.zeros((2, 3)), layer=1)
        # It acts as the numbers say: two more along one axis, at the row that answers.
        edit = {"kind": "steer", "vector": "py-own", "layer": 4, "strength": 3, "strength_unit": "vector"}
        watch = {"layers": [5], "probes": ["py-own"]}
        (answer,) = self.model.complete(
            "One", tapline={"interventions": [edit], "watch": watch}, max_tokens=1, temperature=0
        )
        self.assertAlmostEqual(answer["tapline"]["interventions"][0]["mean_change_length"], 6.0, places=3)
        self.assertIn("py-own", answer["tapline"]["tokens"][0]["probes"])
        self.model.remove_vector("py-own")
        self.model.remove_probe("py-own")

    def test_streaming_is_refused_before_anything_is_sent(self) -> None:
        for ask in (self.model.complete, self.model.chat):
            with self.assertRaisesRegex(ValueError, "^stream is not supported here"):
                ask("One", stream=True)

    @needs_numpy
    def test_a_direction_a_probe_a_pair_and_kept_rows(self) -> None:
        invented = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia"]
        real = ["France", "Germany", "Spain", "Italy", "Portugal", "Poland"]
        texts = {
            "positive": [f"The capital of {country} is" for country in invented],
            "negative": [f"The capital of {country} is" for country in real],
        }
        # One line to make a vector, one to chat with it.
        vector = self.model.make_vector("py-unknown", **texts, layers=[5])
        steer = [{"kind": "steer", "vector": "py-unknown", "strength": 2, "strength_unit": "vector"}]
        probe = self.model.make_probe("py-invented", **texts, layer=5)
        self.assertEqual([probe["layer"], probe["n_embd"]], [5, vector["n_embd"]])
        watch = {"layers": [2, 5], "norms": True, "probes": ["py-invented"], "states": True, "positions": "all"}
        steered, plain = self.model.complete(
            "The capital of Sweden is",
            tapline={"interventions": steer, "watch": watch, "pair": True},
            max_tokens=4,
            temperature=0,
        )
        self.assertIn("unknown", steered["text"])
        self.assertNotIn("unknown", plain["text"])
        self.assertEqual(plain["tapline"]["pair_of"], 0)
        kept = self.model.capture(plain["tapline"]["capture"]["id"])
        self.assertEqual(sorted(kept.layers), [2, 5])
        self.assertEqual(kept.layers[5].shape, (len(kept.rows), vector["n_embd"]))
        self.assertEqual(len(kept.token_ids), len(kept.rows))
        self.assertEqual(kept.prompt_tokens, len(plain["tapline"]["prompt"]))
        # The norms that were told are those of the rows that were kept: a token's is of the row that chose it.
        first = plain["tapline"]["tokens"][0]
        (row,) = np.flatnonzero(kept.rows == kept.prompt_tokens - 1 + first["index"])
        self.assertAlmostEqual(float(np.linalg.norm(kept.layers[5][row])), first["norms"]["5"], delta=0.01)
        (answer,) = self.model.chat(
            "What is the capital of France?",
            max_tokens=20,
            temperature=0,
            chat_template_kwargs={"enable_thinking": False},
        )
        self.assertIn("Paris", answer["message"]["content"])
        for remove in (self.model.remove_vector, self.model.remove_probe):
            with self.assertRaises(TaplineError) as caught:
                remove("py-nobody")
            self.assertEqual(caught.exception.status, 404)
        self.model.remove_vector("py-unknown")
        self.model.remove_probe("py-invented")
        self.assertNotIn("py-unknown", [vector["name"] for vector in self.model.vectors()])

    def test_what_the_service_refuses_is_its_sentence(self) -> None:
        for call in (
            lambda: self.model.inspect(" "),
            lambda: self.model.inspect("One", layers=[200]),
            lambda: self.model.inspect("One two three four", max_input_tokens=1),
            lambda: self.model.inspect("One", layers=[0, 1, 2, 3, 4]),
        ):
            with self.assertRaises(TaplineError) as caught:
                call()
            self.assertEqual(caught.exception.status, 400)
