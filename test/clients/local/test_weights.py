"""Weights of the demo model: the server's own activations follow from them."""

from __future__ import annotations

import os
import unittest

import tapline_lab as tl
from tapline_lab import TaplineError

try:
    import numpy as np
except ImportError:
    np = None

PORT = int(os.environ["TAPLINE_TEST_SERVING_PORT"])
TEXT = "The capital of France is"


@unittest.skipIf(np is None, "NumPy is not installed")
class TestWeights(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.model = tl.connect(PORT)
        cls.run_of = cls.model.run(TEXT, ["block_in.0", "block_out.7", "head_out.3", "attn_out.3"], logits="all")

    def near(self, found: object, expected: object, bound: float) -> None:
        # ggml multiplies quantised weights with rows that it rounds to 8 bits.
        difference = np.linalg.norm(np.asarray(found) - expected) / np.linalg.norm(expected)
        self.assertLess(difference, bound)

    def test_embeddings_are_the_first_blocks_input(self) -> None:
        self.near(self.model.W_E[self.run_of.tokens[0]], self.run_of.cache["block_in.0"][0], 1e-6)

    def test_final_norm_and_unembedding_give_the_logits(self) -> None:
        rows = self.run_of.cache["block_out.7"][0].astype(float)
        eps = self.model.hyperparameter("attention.layer_norm_rms_epsilon")
        normed = rows / np.sqrt((rows**2).mean(-1, keepdims=True) + eps) * self.model.final_norm
        self.near(normed @ self.model.W_U, self.run_of.logits[0], 0.02)

    def test_heads_outputs_through_w_o_are_the_attention_output(self) -> None:
        z = self.run_of.cache["head_out.3"][0].astype(float)
        projections = self.model.W_O[3]
        self.assertEqual(projections.shape, (4, 32, 128))
        self.near(np.einsum("thd,hdm->tm", z, projections), self.run_of.cache["attn_out.3"][0], 0.02)

    def test_shapes_and_names(self) -> None:
        self.assertEqual(self.model.tensors["blk.0.attn_norm.weight"], (128,))
        heads = int(self.model.hyperparameter("attention.head_count_kv"))
        self.assertEqual(self.model.W_V[-1].shape[:2], (heads, 128))
        self.assertEqual(len(self.model.W_O), 8)
        self.assertIn("attn_norm", self.model.norms[0])
        self.assertEqual(self.model.metadata["general.architecture"], "qwen3")
        raw, heads_of = self.model.weight("blk.2.attn_v.weight"), self.model.W_V[2]
        np.testing.assert_array_equal(np.concatenate([head.T for head in heads_of]), raw)
        with self.assertRaisesRegex(TaplineError, r'"nothing" is not a weight of this model'):
            self.model.weight("nothing")

    def test_writing_into_an_array_changes_no_file(self) -> None:
        name = "output_norm.weight"
        kept = self.model.weight(name).copy()
        self.model.weight(name)[:] = 0
        np.testing.assert_array_equal(tl.connect(PORT).weight(name), kept)
        self.model.weight(name)[:] = kept


if __name__ == "__main__":
    unittest.main()
