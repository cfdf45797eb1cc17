"""Figures of results, drawn from results written here by hand."""

from __future__ import annotations

import unittest
from typing import Any
from xml.etree import ElementTree

from tapline_lab import Job, TaplineError

SVG = "{http://www.w3.org/2000/svg}"


def drawn(operation: str, result: dict[str, Any]) -> ElementTree.Element:
    job: Job[Any] = Job(
        {"id": "a" * 32, "operation": operation, "status": "completed", "result": result}, lambda *_: b""
    )
    return ElementTree.fromstring(job.figure().svg)


def trial(prompt: str, strength: float, probability: float, **more: Any) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "strength": strength,
        "probability": probability,
        "target_token": " a<b&\x00",
        **more,
    }


class TestFigures(unittest.TestCase):
    def test_a_dose_response_has_a_line_a_prompt_and_one_for_controls(self) -> None:
        result = {
            "intervention": "steer",
            "trials": [
                trial("P & <Q>", 1, 0.5, control={"probability": 0.25}),
                trial("P & <Q>", 0, 0, control={"probability": 0}),
                trial("R", 0, 1),
                trial("R", 1, 1),
            ],
        }
        picture = drawn("compare", result)
        lines = picture.findall(f"{SVG}polyline")
        self.assertEqual([line.get("stroke-dasharray") for line in lines], [None, None, "5 4"])
        # From strength 0 at the left to 1 at the right, and half of the height up: 36 is the top, 276 the bottom.
        self.assertEqual(lines[0].get("points"), "56.0,276.0 470.0,156.0")
        self.assertEqual(lines[1].get("points"), "56.0,36.0 470.0,36.0")
        texts = [text.text for text in picture.findall(f"{SVG}text")]
        self.assertIn("P & <Q>", texts)
        self.assertIn("random vector", texts)

    def test_a_lens_names_the_most_probable_token_of_every_block(self) -> None:
        candidates = [[{"token": " Paris", "probability": 0.75}, {"token": " Rome", "probability": 0.1}]]
        layers = [{"layer": layer, "norms": [1.0], "predictions": candidates} for layer in (3, 7)]
        picture = drawn("inspect", {"tokens": [" is"], "layers": layers})
        shades = [cell.get("fill-opacity") for cell in picture.findall(f"{SVG}rect")]
        self.assertEqual(shades, [None, "0.750", "0.750"])
        texts = [text.text for text in picture.findall(f"{SVG}text")]
        self.assertEqual(texts.count("Paris"), 2)
        self.assertIn("block 7", texts)

    def test_a_block_without_a_lens_shows_its_norms(self) -> None:
        layers = [{"layer": 0, "norms": [1.0, 4.0], "note": "no lens"}]
        picture = drawn("inspect", {"tokens": ["a", "b"], "layers": layers})
        points = [line.get("points") for line in picture.findall(f"{SVG}polyline")]
        self.assertEqual(points, ["56.0,216.0 470.0,36.0"])

    def test_a_job_that_is_not_done_has_no_figure(self) -> None:
        job: Job[Any] = Job({"id": "1", "operation": "sae", "status": "running"}, lambda *_: b"")
        with self.assertRaisesRegex(TaplineError, "Job 1 is running"):
            job.figure()
        other: Job[Any] = Job(
            {"id": "1", "operation": "other", "status": "completed", "result": {}}, lambda *_: b""
        )
        with self.assertRaisesRegex(TaplineError, "Results of other have no figure"):
            other.figure()
