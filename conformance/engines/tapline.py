"""tapline over HTTP: `POST /lab/forward` for forward calls; completions with a `tapline` object, several at the same time,
for everything with a cache. The command is in TAPLINE_COMMAND, by default `tapline`."""

import json
import os
import shlex
import tempfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from suite import safetensors
from suite.child import Child
from suite.engine import Answer, Engine, by_text

KINDS = {"add": "steer", "scale": "scale", "ablate": "ablate", "patch": "patch"}
NAME = "conformance-{}"


class Adapter(Engine):
    reads = "gguf"

    def __init__(self, files, chunk=None, draft=False):
        self.home = tempfile.TemporaryDirectory()
        command = [*shlex.split(os.environ.get("TAPLINE_COMMAND", "tapline")), "serve", files.gguf, "--port", "0"]
        command += ["--parallel", "4", "--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off"]
        command += ["--batch", str(chunk)] if chunk else []
        command += ["--draft", files.draft] if draft else []
        environment = {**os.environ, "TAPLINE_HOME": self.home.name, "TAPLINE_PARENT": str(os.getpid())}
        self.server = Child("tapline serve", command, r"ready at http://[^\s:]+:(\d+)", env=environment)

    def send(self, path, body, method="POST"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.server.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.code}: {error.read().decode()[:300]}") from error

    def json(self, path, body):
        return json.loads(self.send(path, body))

    def forward(self, texts, edits=(), capture=(), **more):
        body = {"sequences": [list(text) for text in texts], "logits": "last", "edits": [self.edit(each) for each in edits]}
        # A captured row of an edited point includes its edit.
        body["capture"] = [f"{point}.{layer}" for point, layer in capture]
        return safetensors.decoded(self.send("/lab/forward", {**body, **more}))

    def edit(self, edit):
        found = {"kind": KINDS[edit.kind], "at": f"{edit.point}.{edit.layer}", "sequences": [edit.text]}
        if edit.positions is not None:
            found["positions"] = [[at, at] for at in edit.positions]
        return {**found, **self.operands(edit, {"values": [float(each) for each in edit.vector]} if edit.vector is not None else None)}

    def operands(self, edit, vector):
        if edit.kind == "scale":
            return {"strength": edit.factor}
        return {} if vector is None else {"vector": vector, **({"strength_unit": "vector"} if edit.kind == "add" else {})}

    def run(self, texts, edits=(), capture=()):
        found = self.forward(texts, edits, capture)
        lengths = [len(text) for text in texts]
        same = len(set(lengths)) == 1
        rows = {}
        for point, layer in capture:
            name = f"{point}.{layer}"
            if point == "attention":
                rows[point, layer] = list(found[name]) if name in found else [found[f"{name}/{at}"] for at in range(len(texts))]
            else:
                rows[point, layer] = list(found[name]) if same else np.split(found[name], np.cumsum(lengths)[:-1])
        return Answer(list(found["logits"].reshape(len(texts), -1)), rows)

    def generate(self, texts, count, edits=()):
        with ThreadPoolExecutor(len(texts)) as pool:
            return list(pool.map(lambda text, own: self.continuation(text, count, own), texts, by_text(edits, texts)))

    def continuation(self, text, count, edits):
        if not edits:
            body = {"prompt": list(text), "n_predict": count, "temperature": 0, "return_tokens": True}
            return self.json("/completion", body)["tokens"]
        interventions = [self.live(edit) for edit in edits]
        extension = {"interventions": interventions, "watch": {"layers": [0], "norms": True}}
        body = {"prompt": list(text), "max_tokens": count, "temperature": 0, "tapline": extension}
        tokens = self.json("/v1/completions", body)["choices"][0]["tapline"]["tokens"]
        return [token["token_id"] for token in tokens]

    def live(self, edit):
        """Live requests name vectors that the server has stored."""
        found = {"kind": KINDS[edit.kind], "point": edit.point, "layer": edit.layer}
        if edit.positions is not None:
            found["positions"] = [[at, at] for at in edit.positions]
        name = None
        if edit.vector is not None:
            name = NAME.format(abs(hash((edit.layer, np.asarray(edit.vector).tobytes()))))
            self.send(f"/lab/vectors/{name}", safetensors.encoded({f"layer_{edit.layer}": edit.vector}), "PUT")
        return {**found, **self.operands(edit, name)}

    def tokens(self, text):
        return self.json("/tokenize", {"content": text, "add_special": True})["tokens"]

    def mistakes(self):
        """A request to generate may be answered with a report that its edit changed nothing: that is not silent."""
        text = [256, 84, 104]
        scale = {"kind": "scale", "at": "block_out.1", "strength": 2}
        live = {"kind": "scale", "layer": 1, "strength": 2}

        def forward(**changes):
            body = {"sequences": [text], "edits": [{**scale, **changes}]}
            return f"POST /lab/forward {json.dumps(body)}", lambda: self.json("/lab/forward", body)

        def completion(**more):
            body = {"prompt": text, "max_tokens": 1, **more}
            return f"POST /v1/completions {json.dumps(body)}", lambda: self.json("/v1/completions", body)

        def edited(**changes):
            request, send = completion(tapline={"interventions": [{**live, **changes}]})

            def ask():
                (effect,) = send()["choices"][0]["tapline"]["interventions"]
                return f"The answer reports that {effect['rows']} rows were edited." if effect["rows"] == 0 else None

            return request, ask

        return {
            "a block that does not exist": forward(at="block_out.99"),
            "a name that does not exist": forward(at="block_oot.1"),
            "a position beyond the text": forward(positions=[[99, 99]]),
            "a misspelled field": forward(strenght=3),
            "a block that does not exist, in generation": edited(layer=99),
            "a position beyond the text, in generation": edited(positions=[[99, 99]]),
            "a misspelled field, in generation": edited(strenght=3),
            "a misspelled object of edits": completion(taplin={"interventions": [live]}),
            "a field of another program": completion(control_vectors=[{"layer": 1, "scale": 2}]),
        }

    def close(self):
        self.server.close()
        self.home.cleanup()
