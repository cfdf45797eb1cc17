"""llama.cpp's own server as a child process."""

import json
import os
import re
import subprocess
import threading
import urllib.request

import numpy as np

from suite.models import VOCABULARY


class LlamaServer:
    """F32 caches and exact attention, as the models' weights are F32. The server chooses its port."""

    def __init__(self, program, model, *flags, timeout=120):
        arguments = ["-m", model, "--port", "0", "-c", "1024", "-np", "2", "-ngl", "0", "-t", "1", "-fit", "off"]
        arguments += ["-ctk", "f32", "-ctv", "f32", "-fa", "off", "--no-warmup", "--no-webui", *flags]
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        said = []
        for line in self.process.stdout:
            said.append(line.rstrip())
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("llama-server did not start: " + " / ".join(said[-6:]))
        timer.cancel()
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()
        self.address = f"http://127.0.0.1:{found[1]}"

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

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def program():
    return os.environ.get("LLAMA_SERVER")
