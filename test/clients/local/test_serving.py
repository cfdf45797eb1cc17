"""The ServingModel client against `tapline serve`, with the demo model."""

from __future__ import annotations

import os
import unittest

from tapline import ServingModel, TaplineError

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
