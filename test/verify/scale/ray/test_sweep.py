"""The example of a sweep with Ray Data's HTTP processor, through a router, against requests made one by one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path

import tapline_lab as tl

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "ray-sweep.py"


class TestSweep(unittest.TestCase):
    def test_a_sweep_through_a_router_has_the_answers_of_single_requests(self) -> None:
        model = tl.load("demo", quiet=True)
        self.addCleanup(model.close)
        port = model._http.origin.rsplit(":", 1)[1]
        words = [*os.environ["TAPLINE_COMMAND"].split(), "router", "--backend", f"http://127.0.0.1:{port}", "--port", "0"]
        router = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.addCleanup(router.wait)
        self.addCleanup(router.terminate)
        assert router.stdout is not None
        url = next(match.group(1) for line in router.stdout if (match := re.search(r"ready at (http:\S+)", line)))
        ended = subprocess.run([sys.executable, str(EXAMPLE), url], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr[-3000:])
        rows = [line.split("\t") for line in ended.stdout.splitlines() if line.startswith("The capital")]
        self.assertEqual(len({(prompt, strength) for prompt, strength, _ in rows}), 12)
        for prompt, strength, text in rows:
            intervention = {"kind": "scale", "layer": 3, "strength": float(strength)}
            self.assertEqual(text, complete(port, prompt, {"interventions": [intervention]}), f"{prompt} {strength}")
        by_strength = {strength: [text for _, own, text in rows if own == strength] for strength in ("0.0", "1.0")}
        plain = [complete(port, prompt, None) for prompt, strength, _ in rows if strength == "1.0"]
        self.assertEqual(by_strength["1.0"], plain, "a factor of 1 changes nothing")
        self.assertNotEqual(by_strength["0.0"], plain)


def complete(port: str, prompt: str, edits: object) -> str:
    body = {"model": "tapline-demo", "prompt": prompt, "max_tokens": 4, "temperature": 0}
    content = json.dumps(body if edits is None else {**body, "tapline": edits}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", content, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(json.load(response)["choices"][0]["text"])


if __name__ == "__main__":
    unittest.main()
