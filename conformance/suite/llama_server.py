"""llama.cpp's own server as a child process."""

import json
import os
import urllib.request

import numpy as np

from suite.child import Child
from suite.models import VOCABULARY


class LlamaServer(Child):
    """F32 caches and exact attention, as the models' weights are F32."""

    def __init__(self, program, model, *flags):
        arguments = ["-m", model, "--port", "0", "-c", "1024", "-np", "2", "-ngl", "0", "-t", "1", "-fit", "off"]
        arguments += ["-ctk", "f32", "-ctv", "f32", "-fa", "off", "--no-warmup", "--no-webui", *flags]
        super().__init__("llama-server", [program, *arguments], r"listening on http://127\.0\.0\.1:(\d+)")

    def post(self, path, body):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def next(self, tokens, **fields):
        """Log-probabilities of all tokens after a text."""
        body = {"prompt": list(tokens), "n_predict": 1, "n_probs": VOCABULARY, "temperature": 0, "cache_prompt": False, "ignore_eos": True}
        answer = self.post("/completion", {**body, **fields})
        found = np.full(VOCABULARY, np.nan)
        for each in answer["completion_probabilities"][0]["top_logprobs"]:
            found[each["id"]] = each["logprob"]
        return found

    def generate(self, tokens, count, **fields):
        body = {"prompt": list(tokens), "n_predict": count, "temperature": 0, "ignore_eos": True, "return_tokens": True}
        return self.post("/completion", {**body, **fields})["tokens"]


def program():
    return os.environ.get("LLAMA_SERVER")
