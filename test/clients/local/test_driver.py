"""TransformerLens's driver on the demo model, with that package's result type stubbed: it needs no PyTorch."""

from __future__ import annotations

import os
import sys
import types
import unittest
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import tapline_lab as tl

try:
    import numpy as np
except ImportError:
    np = None

PORT = int(os.environ["TAPLINE_TEST_SERVING_PORT"])
TEXTS = ["The capital of France is", "Tom"]


@dataclass(frozen=True)
class ForwardResult:
    """As in transformer_lens.model_bridge.driver_protocol."""

    logits: Any = None
    captured: Any = field(default_factory=dict)
    new_tokens: Any = None
    raw_output: Any = None


def stubbed() -> Any:
    protocol: Any = types.ModuleType("transformer_lens.model_bridge.driver_protocol")
    protocol.ForwardResult = ForwardResult
    names = ["transformer_lens", "transformer_lens.model_bridge"]
    return mock.patch.dict(sys.modules, {**{name: types.ModuleType(name) for name in names}, protocol.__name__: protocol})


# Canonical names and aliases of a block with norms before both halves, as TransformerLens's adapters have them.
PARTS = ["hook_in", "ln1.hook_in", "ln1.hook_scale", "ln1.hook_normalized", "attn.hook_pattern", "attn.hook_rot_q"]
PARTS += ["attn.o.hook_in", "attn.hook_out", "ln2.hook_in", "ln2.hook_scale", "ln2.hook_normalized", "mlp.hook_out"]
PARTS += ["hook_out"]
NAMES = {f"blocks.{layer}.{part}" for layer in range(8) for part in PARTS}
NAMES |= {"embed.hook_out", "ln_final.hook_in", "ln_final.hook_scale", "ln_final.hook_normalized", "unembed.hook_out"}
ALIASES = {
    f"blocks.{layer}.{alias}": f"blocks.{layer}.{name}"
    for layer in range(8)
    for alias, name in {
        "hook_resid_pre": "hook_in",
        "attn.hook_z": "attn.o.hook_in",
        "hook_attn_out": "attn.hook_out",
        "hook_resid_mid": "ln2.hook_in",
        "hook_mlp_out": "mlp.hook_out",
        "hook_resid_post": "hook_out",
    }.items()
}


@unittest.skipIf(np is None, "NumPy is not installed")
class TestDriver(unittest.TestCase):
    def setUp(self) -> None:
        from tapline_lab._driver import Driver
        from tapline_lab._hook_points import find_hooks

        self.model = tl.connect(PORT)
        self.driver = Driver(
            self.model,
            find_hooks(self.model, NAMES, ALIASES),
            architecture="Qwen3ForCausalLM",
            bridge_config=None,
            tokenizer=None,
            other_hooks=NAMES,
            eps=1e-6,
        )
        stub = stubbed()
        stub.start()
        self.addCleanup(stub.stop)
        self.tokens = [self.model.tokenize(text) for text in TEXTS]

    def test_hooks_that_the_model_lacks_do_not_fire(self) -> None:
        self.assertEqual(self.driver.non_fireable_hook_points, {f"blocks.{layer}.attn.hook_rot_q" for layer in range(8)})
        self.assertEqual(self.driver.supported_hook_points, NAMES - self.driver.non_fireable_hook_points)
        with self.assertRaisesRegex(NotImplementedError, "blocks.0.attn.hook_rot_q is not a hook point that tapline"):
            self.driver.forward([[1]], capture=("blocks.0.attn.hook_rot_q",))

    def test_captures_and_logits_are_those_of_run(self) -> None:
        names = {"blocks.3.hook_out": "block_out.3", "blocks.2.attn.hook_pattern": "attention.2"}
        names |= {"embed.hook_out": "block_in.0", "blocks.1.attn.o.hook_in": "head_out.1", "ln_final.hook_in": "block_out.7"}
        run = self.model.run([self.tokens[0]], list(names.values()), logits="all")
        found = self.driver.forward(np.array([self.tokens[0]]), capture=tuple(names))
        for name, ours in names.items():
            np.testing.assert_array_equal(found.captured[name], run.cache[ours])
        np.testing.assert_array_equal(found.logits, run.logits)
        self.assertEqual(found.new_tokens.tolist(), [[int(run.logits[0, -1].argmax())]])
        # Without attention, as below: it is computed without flash attention, which rounds differently.
        rows = self.model.run([self.tokens[0]], "block_out.7", logits="all").cache["block_out.7"].astype(float)
        derived = self.driver.forward([self.tokens[0]], capture=("ln_final.hook_scale", "ln_final.hook_normalized"))
        scale = np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-6)
        np.testing.assert_allclose(derived.captured["ln_final.hook_scale"], scale, rtol=1e-5)
        np.testing.assert_allclose(derived.captured["ln_final.hook_normalized"], rows / scale, rtol=1e-4, atol=1e-6)

    def test_padding_is_neither_computed_nor_returned(self) -> None:
        long, short = self.tokens
        pad = len(long) - len(short)
        names = ("blocks.3.hook_out", "blocks.2.attn.hook_pattern")
        alone = self.driver.forward([short], capture=names)
        for left in (True, False):
            row = [0] * pad + short if left else short + [0] * pad
            mask = [[1] * len(long), [0] * pad + [1] * len(short) if left else [1] * len(short) + [0] * pad]
            found = self.driver.forward(np.array([long, row]), capture=names, attention_mask=np.array(mask))
            span = slice(pad, None) if left else slice(0, len(short))
            rows = found.captured[names[0]]
            self.assertEqual(rows.shape, (2, len(long), 128))
            self.assertLess(np.abs(rows[1, span] - alone.captured[names[0]][0]).max(), 0.05)
            self.assertTrue((np.delete(rows[1], range(len(long))[span], axis=0) == 0).all())
            pattern = found.captured[names[1]][1]
            np.testing.assert_allclose(pattern[:, span, span].sum(-1), 1, atol=1e-5)
            self.assertAlmostEqual(float(pattern.sum()), 4 * len(short), places=4)
        with self.assertRaisesRegex(ValueError, "without gaps"):
            self.driver.forward([[1, 2, 3]], attention_mask=[[1, 0, 1]])

    def test_specs_change_the_rows_they_name(self) -> None:
        name, tokens = "blocks.4.hook_out", [self.tokens[0], self.tokens[0][::-1]]
        plain = self.driver.forward(tokens, capture=(name,)).captured[name]
        vector = np.cos(np.arange(128.0))

        def edited(spec: object) -> Any:
            return self.driver.forward(tokens, capture=(name,), intervene={name: spec}).captured[name]

        added = edited({"op": "add", "value": vector, "pos": 2, "sequences": [1]})
        np.testing.assert_array_equal(added[0], plain[0])
        np.testing.assert_allclose(added[1, 2], plain[1, 2] + vector, atol=1e-3)
        np.testing.assert_array_equal(np.delete(added[1], 2, axis=0), np.delete(plain[1], 2, axis=0))
        np.testing.assert_allclose(edited({"op": "scale", "factor": 0.5}), plain / 2, rtol=1e-5)
        np.testing.assert_array_equal(edited({"op": "suppress", "pos": [0, -1]})[:, [0, -1]], 0)
        both = edited({"op": "set", "value": np.stack([vector, 2 * vector]), "pos": [1, 3]})
        np.testing.assert_allclose(both[:, 1], np.stack([vector, vector]), atol=1e-4)
        np.testing.assert_allclose(both[:, 3], np.stack([2 * vector, 2 * vector]), atol=1e-4)
        np.testing.assert_allclose(edited({"op": "set", "value": 1.5}), np.full_like(plain, 1.5), atol=1e-4)
        in_order = edited([{"op": "set", "value": 1}, {"op": "scale", "factor": 3}])
        np.testing.assert_allclose(in_order, np.full_like(plain, 3), atol=1e-4)

    def test_positions_count_with_padding(self) -> None:
        name, short = "blocks.4.hook_out", self.tokens[1]
        ids, mask = [[0, 0, *short]], [[0, 0] + [1] * len(short)]
        spec = {name: {"op": "suppress", "pos": 2}}
        found = self.driver.forward(ids, capture=(name,), intervene=spec, attention_mask=mask).captured[name]
        self.assertEqual(np.flatnonzero(np.abs(found[0]).sum(-1) == 0).tolist(), [0, 1, 2])

    def test_heads_of_hook_z(self) -> None:
        name, out = "blocks.3.attn.o.hook_in", ("blocks.3.attn.o.hook_in",)
        plain = self.driver.forward([self.tokens[0]], capture=out).captured[name]
        spec = {name: {"op": "set", "value": np.ones(32), "heads": [2]}}
        found = self.driver.forward([self.tokens[0]], capture=out, intervene=spec).captured[name]
        np.testing.assert_allclose(found[:, :, 2], 1, atol=1e-5)
        np.testing.assert_array_equal(found[:, :, [0, 1, 3]], plain[:, :, [0, 1, 3]])

    def test_more_sequences_and_edits_than_a_call_takes(self) -> None:
        name, tokens = "blocks.0.hook_out", [self.tokens[0][:2]] * 70
        specs = [{"op": "set", "value": float(i), "pos": 1, "sequences": [i]} for i in range(1, 70)]
        found = self.driver.forward(tokens, capture=(name,), intervene={name: specs * 20}, return_logits=False)
        rows = found.captured[name]
        self.assertEqual(rows.shape, (70, 2, 128))
        np.testing.assert_allclose(rows[1:, 1, 5], np.arange(1.0, 70), atol=1e-3)
        self.assertIsNone(found.logits)

    def test_greedy_tokens_are_those_the_server_generates(self) -> None:
        found = self.driver.forward([self.tokens[0]], max_new_tokens=2)
        [answer] = self.model.complete(TEXTS[0], max_tokens=2, temperature=0)
        self.assertEqual(found.new_tokens.shape, (1, 2))
        self.assertEqual(self.model.to_string(found.new_tokens[0]), answer["text"])

    def test_stop_at_layer_computes_only_the_blocks_before_it(self) -> None:
        found = self.driver.forward([self.tokens[0]], capture=("blocks.2.hook_in",), stop_at_layer=2)
        self.assertIsNone(found.logits)
        expected = self.model.run([self.tokens[0]], "block_in.2").cache["block_in.2"]
        np.testing.assert_array_equal(found.captured["blocks.2.hook_in"], expected)

    def test_refusals_are_sentences(self) -> None:
        name = "blocks.4.hook_out"
        for intervene, error, sentence in [
            ({name: {"op": "double"}}, ValueError, "op must be add, scale, set, suppress, got 'double'"),
            ({name: {"op": "add"}}, ValueError, "add needs value"),
            ({name: {"op": "suppress", "positions": 1}}, ValueError, "suppress has no positions"),
            ({name: {"op": "add", "value": [1.0, 2.0]}}, ValueError, "one number or 128 numbers"),
            ({name: {"op": "suppress", "pos": 99}}, ValueError, "pos 99 is not a token of sequence 0"),
            ({name: {"op": "suppress", "sequences": [7]}}, ValueError, "sequence 7 does not exist in a batch of 1"),
            ({name: {"op": "suppress", "heads": [0]}}, ValueError, "heads are only possible at hook_z"),
            ({name: lambda rows: rows}, NotImplementedError, "pass functions as hooks"),
            ({"blocks.4.attn.hook_pattern": {"op": "suppress"}}, NotImplementedError, "can only be read"),
            ({"blocks.4.ln2.hook_in": {"op": "suppress"}}, NotImplementedError, "can only be read"),
        ]:
            with self.assertRaisesRegex(error, sentence):
                self.driver.forward([self.tokens[0]], intervene=intervene)
        with self.assertRaisesRegex(TypeError, "The tapline driver has no past_key_values"):
            self.driver.forward([[1]], past_key_values=object())

    def test_without_transformer_lens_one_sentence_says_so(self) -> None:
        with mock.patch.dict(sys.modules, {"torch": None}), self.assertRaisesRegex(tl.TaplineError, "4.3 or newer is needed"):
            tl.transformer_lens(self.model)


if __name__ == "__main__":
    unittest.main()
