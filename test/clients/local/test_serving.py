"""The ServingModel client against `tapline serve`, with the demo model."""

from __future__ import annotations

import os
import unittest

from tapline import ServingModel, TaplineError

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
