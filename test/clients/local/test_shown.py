"""Weights, tables and pictures of small results, each figure computed by hand."""

from __future__ import annotations

import importlib
import io
import json
import struct
import sys
import types
import unittest
from collections.abc import Mapping
from typing import Any
from unittest import mock
from xml.etree import ElementTree

from tapline_lab import Job, TaplineError
from tapline_lab._progress import ProgressLine

try:
    import numpy as np
except ImportError:
    np = None

needs_numpy = unittest.skipIf(np is None, "NumPy is not installed")
SVG = "{http://www.w3.org/2000/svg}"


def job(operation: str, result: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> Job[Any]:
    kept = dict(files or {})
    fields = {"id": "0123456789abcdef" * 2, "operation": operation, "status": "completed", "model": "m"}
    return Job({**fields, "result": {"artifacts": list(kept), **result}}, lambda _, name: kept[name])


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def safetensors(metadata: dict[str, str], dtype: str = "F32", **tensors: Any) -> bytes:
    header: dict[str, Any] = {"__metadata__": metadata}
    data = b""
    for name, values in tensors.items():
        array = np.array(values, "<f4")
        header[name.replace("__", ".")] = {
            "dtype": dtype,
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@needs_numpy
class TestWeights(unittest.TestCase):
    def test_a_probe_standardises_and_weighs(self) -> None:
        content = npz(weight=np.array([2.0, -1.0]), bias=np.float64(0.5), mean=np.array([1.0, 2.0]), std=np.array([2.0, 4.0]))
        found = job("probe", {}, {"probe-layer-12.npz": content}).probes()
        self.assertEqual(list(found), [12])
        # ((3 - 1) / 2) * 2 + ((6 - 2) / 4) * -1 + 0.5 = 1.5; and 0.5 where both are at their means.
        given = found[12].probabilities([[3.0, 6.0], [1.0, 2.0], [1e9, 2.0], [-1e9, 2.0]])
        np.testing.assert_allclose(given, [0.8175744761936437, 0.6224593312018546, 1, 0], atol=1e-12)

    def autoencoder(self, metadata: dict[str, str], **more: Any) -> Any:
        weights = safetensors(
            metadata,
            encoder__weight=[[1, 0], [0, 1], [1, 1]],
            encoder__bias=[0, 0.5, -1],
            decoder__weight=[[1, 0, 2], [0, 1, 3]],
            decoder__bias=[0.25, -0.25],
            **more,
        )
        normal = npz(mean=np.array([10.0, 20.0]), scale=np.float64(2))
        files = {"sae-layer-3.safetensors": weights, "sae-normalization-3.npz": normal}
        return job("sae", {}, files).autoencoders()[3]

    def test_an_autoencoder_subtracts_its_mean_divides_by_its_scale_and_back(self) -> None:
        relu = self.autoencoder({})
        # (14 - 10) / 2 = 2 and (18 - 20) / 2 = -1: features 2, -1 + 0.5 and 2 - 1 - 1.
        np.testing.assert_allclose(relu.encode([[14.0, 18.0]]), [[2, 0, 0]])
        np.testing.assert_allclose(relu.encode([[14.0, 22.0]]), [[2, 1.5, 2]])
        # 1 + 2 * 3 + 0.25 and 2 + 3 * 3 - 0.25 in standard units, twice as long, behind the mean.
        np.testing.assert_allclose(relu.decode([1.0, 2.0, 3.0]), [10 + 2 * 7.25, 20 + 2 * 10.75])
        self.assertEqual((relu.k, relu.threshold), (None, None))

    def test_topk_keeps_the_first_of_equal_ones(self) -> None:
        top = self.autoencoder({"architecture": "topk", "k": "2"})
        np.testing.assert_allclose(top.encode([[14.0, 22.0], [16.0, 20.0]]), [[2, 0, 2], [3, 0, 2]])
        one = self.autoencoder({"architecture": "topk", "k": "1"})
        np.testing.assert_allclose(one.encode([14.0, 22.0]), [2, 0, 0])
        # Only topk has a k of its own; what else has a threshold says that.
        self.assertIsNone(self.autoencoder({"architecture": "batchtopk", "k": "2"}).k)

    def test_a_threshold_has_to_be_exceeded_and_takes_nothing_away(self) -> None:
        jump = self.autoencoder({"architecture": "jumprelu"}, threshold=[2, 1, 1.5])
        np.testing.assert_allclose(jump.encode([14.0, 22.0]), [0, 1.5, 2])
        np.testing.assert_allclose(jump.encode([14.5, 22.0]), [2.25, 1.5, 2.25])

    def test_what_cannot_be_read(self) -> None:
        half = {"sae-layer-3.safetensors": safetensors({}, "BF16", a=[1]), "sae-normalization-3.npz": b""}
        with self.assertRaisesRegex(TaplineError, "Tensor a is BF16; this client supports only F32."):
            job("sae", {}, half).autoencoders()
        with self.assertRaisesRegex(TaplineError, "probe-layer-.npz does not contain a layer."):
            job("probe", {}, {"probe-layer-.npz": npz(bias=1, weight=1, mean=1, std=1)}).probes()

    def test_an_artifact_s_objects_are_not_made(self) -> None:
        content = npz(text=np.array([{}], object), token=np.array([3]), score=np.array([0.25]))
        with self.assertRaisesRegex(ValueError, "Object arrays cannot be loaded"):
            job("probe", {}, {"probe-rows-7.npz": content}).row_scores()

    def test_scores_of_rows(self) -> None:
        content = npz(text=np.array([0, 1]), token=np.array([3, 4]), score=np.array([0.25, 0.75]))
        (rows,) = job("probe", {}, {"probe-rows-7.npz": content, "probe-layer-7.npz": b""}).row_scores().values()
        self.assertEqual((rows.text.tolist(), rows.token.tolist(), rows.score.tolist()), ([0, 1], [3, 4], [0.25, 0.75]))


SITES = [
    {"layer": 0, "position": 0, "logit_difference": 1.0, "change": 0.25, "recovery": 0.1},
    {"layer": 1, "position": 0, "logit_difference": 2.0, "change": -0.75, "recovery": None},
    {"layer": 1, "position": 1, "logit_difference": 3.0, "change": 0.5, "recovery": 1.0},
]
FIDELITY = {"tokens": 9, "l0": 1.5, "explained_variance": 0.5, "cosine": 0.75, "loss_recovered": 0.875}


def cells(operation: str, result: Mapping[str, Any]) -> list[list[list[str]]]:
    """A job's tables as a notebook shows them: rows of texts."""
    html = job(operation, result)._repr_html_().replace("<p>", "<p >")
    tables = ElementTree.fromstring(f"<a>{html}</a>").findall("table")
    return [[["".join(cell.itertext()) for cell in row] for row in table] for table in tables]


class TestTables(unittest.TestCase):
    def test_each_operation_s(self) -> None:
        value = lambda number: {"value": number, "low": 0, "high": 1}  # noqa: E731
        report = {"layer": 3, "accuracy": 0.5, "auc": 0.25, "majority_accuracy": 0.625, "shuffled_label_accuracy": 0.375, "test_size": 8}
        trained = {"layer": 3, "explained_variance": 0.5, "held_out_mse": 0.25, "mean_active": 1.5, "dead_features": 2}
        read = {"fidelity": FIDELITY, "features": [{"feature": 7, "max": 2.5, "mean": 1.5, "frequency": 0.125, "text": 0, "token": 3}]}
        extracted = {"texts": 1, "tokens": 2, "row_count": 3, "hidden": 4, "dtype": "f16", "files": 5, "bytes": 6, "folder": None}
        drifted = {"layers": [{"layer": 2, "cosine": value(0.9), "relative_length": value(1.1), "relative_difference": value(0.2)}]}
        swept = {"clean": 1.0, "corrupted": -1.0, "restored": -0.5, "sites": SITES}
        explained = {
            "explained": [{"position": 4, "token": " a", "descriptions": [{"text": "one"}, {"text": "two"}], "shuffled": [{"text": "three"}]}],
            "unfilled": [{"text": "four"}],
        }
        for operation, result, expected in (
            ("probe", {"reports": [report]}, [[["layer", "accuracy", "auc", "majority accuracy", "shuffled label accuracy", "test size"], ["3", "0.5", "0.25", "0.625", "0.375", "8"]]]),
            ("sae", {"reports": [trained]}, [[["layer", "explained variance", "held out mse", "mean active", "dead features"], ["3", "0.5", "0.25", "1.5", "2"]]]),
            ("features", read, [[["tokens", "l0", "explained variance", "cosine", "loss recovered"], ["9", "1.5", "0.5", "0.75", "0.875"]], [["feature", "max", "mean", "frequency", "text", "token"], ["7", "2.5", "1.5", "0.125", "0", "3"]]]),
            ("extract", extracted, [[["texts", "tokens", "row count", "hidden", "dtype", "files", "bytes", "folder"], ["1", "2", "3", "4", "f16", "5", "6", "None"]]]),
            ("drift", drifted, [[["layer", "cosine", "relative length", "relative difference"], ["2", "0.9", "1.1", "0.2"]]]),
            ("patch_sweep", swept, [[["clean", "corrupted", "restored"], ["1", "-1", "-0.5"]], [["layer", "position", "logit difference", "change", "recovery"], ["1", "0", "2", "-0.75", "None"], ["1", "1", "3", "0.5", "1"], ["0", "0", "1", "0.25", "0.1"]]]),
            ("explain", explained, [[["position", "token", "what", "text"], ["4", "' a'", "descriptions", "one"], ["4", "' a'", "descriptions", "two"], ["4", "' a'", "shuffled", "three"], ["", "", "without a row", "four"]]]),
        ):  # fmt: skip
            with self.subTest(operation):
                self.assertEqual(cells(operation, result), expected)

    def test_points_and_heads_of_a_sweep_are_columns_where_there_are_any(self) -> None:
        inner = [{**SITES[0], "point": "head_out", "head": 2}, {**SITES[1], "point": "block_out"}]
        (_, table) = cells("patch_sweep", {"clean": 1, "corrupted": 1, "restored": 1, "sites": inner})
        self.assertEqual([row[:4] for row in table], [["layer", "point", "head", "position"], ["1", "block_out", "", "0"], ["0", "head_out", "2", "0"]])

    def test_what_nobody_sees_is_written_out_and_markup_is_text(self) -> None:
        said = {"unfilled": [{"text": "a\u202eb\u200b\n<i>&東"}], "explained": []}
        html = job("explain", said)._repr_html_()
        self.assertIn("<td>a\\u202eb\\u200b\\n&lt;i&gt;&amp;東</td>", html)
        self.assertIn("of \\u202em", Job({**job("explain", said), "model": "of \u202em"}, lambda *_: b"")._repr_html_())

    def test_forty_rows_are_all_of_them(self) -> None:
        trial = dict.fromkeys(("prompt", "strength", "target_token", "baseline_probability", "probability", "delta", "output"), 1)
        html = job("compare", {"trials": [trial] * 40})._repr_html_()
        self.assertEqual((html.count("<tr>"), "more rows" in html), (41, False))
        self.assertIn("<p>1 more rows are in the job&#x27;s result.</p>".replace("&#x27;", "'"), job("compare", {"trials": [trial] * 41})._repr_html_())


class TestFrames(unittest.TestCase):
    def rows(self, operation: str, result: Mapping[str, Any]) -> Any:
        """What pandas is given; it need not be there."""
        pandas: Any = types.ModuleType("pandas")
        pandas.json_normalize = list
        pandas.DataFrame = list
        with mock.patch.dict(sys.modules, {"pandas": pandas}):
            sys.modules.pop("tapline_lab.frames", None)
            try:
                importlib.import_module("tapline_lab.frames")
                return job(operation, result).frame()
            finally:
                sys.modules.pop("tapline_lab.frames", None)

    def test_each_operation_s(self) -> None:
        score = {"text": "a", "score": 0.5}
        example = {"text": "best", "activation": 2}
        features = [
            {"feature": 4, "mean": 0.5, "frequency": 0.25, "examples": [example, {"text": "next"}]},
            {"feature": 5, "mean": 0, "frequency": 0, "examples": []},
        ]
        texts = [
            {"tokens": ["a", "b"], "top": [[], [{"feature": 1, "activation": 2}]]},
            {"tokens": ["c"], "top": [[{"feature": 3, "activation": 4}, {"feature": 5, "activation": 6}]]},
        ]
        for operation, result, expected in (
            ("compare", {"trials": [{"strength": 1}]}, [{"strength": 1}]),
            ("probe", {"reports": [{"layer": 3, "scores": [score]}]}, [{"layer": 3, **score}]),
            ("sae", {"reports": [{"layer": 3, "features": features}]}, [
                {"layer": 3, "feature": 4, "mean": 0.5, "frequency": 0.25, "example": "best"},
                {"layer": 3, "feature": 5, "mean": 0, "frequency": 0, "example": None},
            ]),
            ("features", {"texts": texts}, [
                {"text": 0, "position": 1, "token": "b", "feature": 1, "activation": 2},
                {"text": 1, "position": 0, "token": "c", "feature": 3, "activation": 4},
                {"text": 1, "position": 0, "token": "c", "feature": 5, "activation": 6},
            ]),
            ("patch_sweep", {"sites": SITES}, SITES),
        ):  # fmt: skip
            with self.subTest(operation):
                self.assertEqual(self.rows(operation, result), expected)
        with self.assertRaisesRegex(TaplineError, "Results of drift have no table."):
            self.rows("drift", {})

    def test_a_row_for_each_token_and_layer(self) -> None:
        lens = [[{"token": "x", "probability": 0.5}, {"token": "y", "probability": 0.25}], [{"token": "z", "probability": 1}]]
        target = [{"rank": 3, "probability": 0.125}, {"rank": 1, "probability": 0.75}]
        layers = [
            {"layer": 1, "norms": [1.5, 2.5], "predictions": lens, "target": target},
            {"layer": 4, "norms": [3.5, 4.5], "target": target[:1]},
        ]
        self.assertEqual(
            self.rows("inspect", {"tokens": ["a", "b"], "layers": layers}),
            [
                {"layer": 1, "position": 0, "token": "a", "norm": 1.5, "lens_token": "x", "lens_probability": 0.5, "target_rank": 3, "target_probability": 0.125},
                {"layer": 1, "position": 1, "token": "b", "norm": 2.5, "lens_token": "z", "lens_probability": 1, "target_rank": 1, "target_probability": 0.75},
                {"layer": 4, "position": 0, "token": "a", "norm": 3.5},
                {"layer": 4, "position": 1, "token": "b", "norm": 4.5},
            ],
        )


def drawn(operation: str, result: Mapping[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(job(operation, result).figure().svg)


def points(picture: ElementTree.Element) -> list[str | None]:
    return [line.get("points") for line in picture.findall(f"{SVG}polyline")]


def words(picture: ElementTree.Element) -> list[str | None]:
    return [text.text for text in picture.findall(f"{SVG}text")]


class TestPictures(unittest.TestCase):
    """Where nothing else is said, 56 is the left, 470 the right, 36 the top and 276 the bottom."""

    def test_a_probe_s_accuracy_by_layer_beside_what_is_no_skill(self) -> None:
        reports = [
            {"layer": layer, "accuracy": 1, "shuffled_label_accuracy": 0.5, "majority_accuracy": 0.75, "by_row": {"accuracy": 0.25}}
            for layer in (2, 4)
        ]
        picture = drawn("probe", {"reports": reports})
        at = lambda y: f"56.0,{y}.0 470.0,{y}.0"  # noqa: E731
        self.assertEqual(points(picture), [at(36), at(216), at(156), at(96)])
        dashes = [line.get("stroke-dasharray") for line in picture.findall(f"{SVG}polyline")]
        self.assertEqual(dashes, [None, None, "5 4", "5 4"])
        names = ["held-out examples", "single tokens", "shuffled labels", "majority label"]
        self.assertEqual([word for word in words(picture) if word in names or (word or "").startswith("majority")][:3], names[:3])

    def test_a_loss_is_drawn_from_zero(self) -> None:
        losses = [{"step": 0, "loss": 4.0}, {"step": 50, "loss": 2.0}, {"step": 100, "loss": 1.0}]
        picture = drawn("sae", {"reports": [{"layer": 3, "losses": losses}]})
        self.assertEqual(points(picture), ["56.0,36.0 263.0,156.0 470.0,216.0"])
        self.assertIn("layer 3", words(picture))
        self.assertEqual([word for word in words(picture) if word in ("0", "1", "2", "3", "4", "50", "100")], ["0", "1", "2", "3", "4", "0", "50", "100"])

    def test_a_long_name_is_cut_in_the_legend(self) -> None:
        reports = [{"layer": layer, "losses": [{"step": 0, "loss": 1}]} for layer in (10**13, 10**14)]
        told = words(drawn("sae", {"reports": reports}))
        self.assertEqual(told[-2:], ["layer 10000000000000", "layer 1000000000000…"])

    def test_of_many_steps_eight_or_a_few_more_are_named(self) -> None:
        losses = [{"step": step, "loss": 1.0} for step in range(24)]
        named = [word for word in words(drawn("sae", {"reports": [{"layer": 3, "losses": losses}]})) if (word or "").isdigit()]
        self.assertEqual(named[-8:], ["0", "3", "6", "9", "12", "15", "18", "21"])

    def test_of_a_long_text_the_lens_shows_the_last_twelve_tokens_the_highest_block_first(self) -> None:
        tokens = [f"t{index}" for index in range(14)]
        lens = [[{"token": f"n{index}", "probability": index / 20}] for index in range(14)]
        layers = [{"layer": layer, "norms": [], "predictions": lens} for layer in (1, 5)]
        picture = drawn("inspect", {"tokens": tokens, "layers": layers})
        told = words(picture)
        row = [f"n{index}" for index in range(2, 14)]
        self.assertEqual(told[:26], ["block 5", *row, "block 1", *row])
        self.assertEqual(told[26:38], tokens[2:])
        # White on what is darker than half.
        inks = {text.text: text.get("fill") for text in picture.findall(f"{SVG}text")}
        self.assertEqual((inks["n10"], inks["n11"]), ("#222222", "#ffffff"))

    def sweep(self, sites: list[dict[str, Any]], **more: Any) -> ElementTree.Element:
        side = {"tokens": ["a", "b"]}
        result = {"sites": sites, "pairs": [{"clean": side, "corrupted": {"tokens": ["c", "d"]}}], "positions": [-1, 0], "layers": [0, 1]}
        return drawn("patch_sweep", {**result, **more})

    def test_a_sweep_is_a_map_with_the_highest_block_first_and_tokens_in_their_order(self) -> None:
        sites = [
            {"layer": layer, "position": position, "recovery": recovery, "change": 9}
            for layer, position, recovery in ((0, -1, 0.5), (0, 0, -0.25), (1, -1, 2.0), (1, 0, None))
        ]
        picture = self.sweep(sites)
        fills = [(cell.get("fill"), cell.get("fill-opacity")) for cell in picture.findall(f"{SVG}rect")][1:]
        blue, orange = "#0b6e99", "#c4542b"
        self.assertEqual(fills, [(blue, "0.000"), (blue, "1.000"), (orange, "0.125"), (blue, "0.250")])
        self.assertEqual(words(picture), ["patch_sweep: recovery", "block 1", "0.00", "2.00", "block 0", "-0.25", "0.50", "a", "b", "c", "d"])

    def test_where_nothing_can_be_a_share_it_is_the_change(self) -> None:
        sites = [
            {"layer": layer, "position": position, "recovery": None, "change": change}
            for layer, position, change in ((0, -1, 1), (0, 0, 2), (1, -1, -4), (1, 0, 0))
        ]
        picture = self.sweep(sites)
        self.assertEqual(words(picture)[0], "patch_sweep: change")
        shades = [cell.get("fill-opacity") for cell in picture.findall(f"{SVG}rect")][1:]
        self.assertEqual(shades, ["0.000", "1.000", "0.500", "0.250"])

    def test_a_head_is_shown_at_its_strongest_token(self) -> None:
        sites = [
            {"layer": layer, "position": position, "recovery": recovery, "change": 0, "point": "head_out", "head": head}
            for layer, head, position, recovery in ((0, 3, 0, 0.25), (0, 3, -1, -0.75), (1, 3, 0, 0.5), (1, 3, -1, 0.125))
        ]
        picture = self.sweep(sites, points=["head_out"], heads=[3])
        self.assertEqual(words(picture), ["patch_sweep: recovery, head_out, each head at its strongest token", "block 1", "0.50", "block 0", "-0.75", "head 3"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


class TestProgress(unittest.TestCase):
    def test_a_line_leaves_the_last_column_free_and_nothing_of_the_one_before(self) -> None:
        stream = Terminal()
        line = ProgressLine(stream)
        about = {"id": "0123456789", "operation": "inspect", "status": "running"}
        line.show({**about, "progress": {"stage": "s" * 200, "done": 1, "total": 4}}, 3)
        line.show({**about, "progress": {"stage": "capture", "done": 1, "total": 4}}, 3.6)
        line.clear()
        _, long, short, *rest = stream.getvalue().split("\r")
        self.assertEqual(len(long), 79)
        self.assertEqual(short, "inspect 01234567 running: capture 1/4 (4 s)".ljust(79))
        self.assertEqual(rest, [" " * 43, ""])

    def test_what_a_terminal_would_obey_is_not_written(self) -> None:
        stream = Terminal()
        progress = {"stage": "a\x1b[2J\u202eb", "done": 0, "total": 0}
        ProgressLine(stream).show({"id": "0", "operation": "inspect\n", "status": "running", "progress": progress}, 0)
        self.assertEqual(stream.getvalue(), "\rinspect? 0 running: a?[2J?b (0 s)")

    def test_where_nothing_was_shown_nothing_is_cleared(self) -> None:
        stream = Terminal()
        ProgressLine(stream).clear()
        self.assertEqual(stream.getvalue(), "")
