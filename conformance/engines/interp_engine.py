"""interp-engine's eager backend: `capture`, `HookManager.write` at named points, `generate_stream`."""

from contextlib import contextmanager

import torch

from engines.torch_rows import answers, changed, grouped, padded, quiet
from suite.engine import Engine, NotOffered

POINTS = {"block_out": "resid_post", "attn_out": "attn_out", "ffn_out": "mlp_out", "attention": "attn_probs"}
# The points whose values are added to the residual stream, in models with a norm after attention and MLP.
AFTER_NORM = {"attn_out": "attn_out_post", "ffn_out": "mlp_out_post"}


class Adapter(Engine):
    package = "interp-engine"

    def __init__(self, files, chunk=None, draft=False):
        if files.form != "F32":
            raise NotOffered("Models are loaded from Hugging Face folders.")
        if chunk:
            raise NotOffered("The eager backend computes a prompt in one pass.")
        if draft:
            raise NotOffered("The eager backend has no draft model.")
        quiet()
        from interp_engine import load_model

        self.model = load_model(files.folder, backend="eager", dtype="float32", device="cpu")

    def point(self, name, layer):
        after = AFTER_NORM.get(name)
        return after if after and self.model.serves(after, layer) else POINTS[name]

    @contextmanager
    def writes(self, edits, firsts):
        from interp_engine import HookManager

        by_place = grouped(edits)
        with HookManager() as manager:
            for place in by_place:
                module, side = self.model.resolve_point(self.point(*place), place[1])
                manager.write(module, self.write(by_place[place], firsts), point=side)
            yield

    def write(self, edits, firsts):
        done = 0

        def change(value):
            nonlocal done
            new = changed(value, edits, firsts, done)
            done += value.shape[1]
            return new

        return change

    def run(self, texts, edits=(), capture=()):
        from interp_engine import Address
        from interp_engine import capture as read

        ids, mask, firsts = padded(texts, "left")
        points = {place: Address(self.point(*place), place[1]) for place in capture}
        final = Address("lm_head", None)
        with self.writes(edits, firsts):
            cache = read(self.model, ids, [*points.values(), final], attention_mask=mask)
        return answers(texts, firsts, cache[final], {place: cache[point] for place, point in points.items()})

    def generate(self, texts, count, edits=()):
        from interp_engine import generate_stream

        if len(texts) > 1:
            raise NotOffered("`generate_stream` takes one text.")
        with self.writes(edits, [0]):
            steps = generate_stream(self.model, torch.tensor(texts), max_tokens=count, temperature=0, stop_at_eos=False)
            return [[step.token_id for step in steps]]

    def tokens(self, text):
        return self.model.to_tokens(text)[0].tolist()

    def mistakes(self):
        from interp_engine import Address, SteerSpec, steer
        from interp_engine import capture as read

        ids = torch.tensor([[256, 84, 104]])

        def steered(**changes):
            with steer(self.model, [SteerSpec(**{"vector": torch.ones(self.model.d_model), "layer": 1, **changes})]):
                read(self.model, ids, [Address("resid_post", 1)])

        def masked():
            spec = [SteerSpec(vector=torch.ones(self.model.d_model), layer=1)]
            with steer(self.model, spec, prompt_token_ids=ids, position_mask=[99]):
                read(self.model, ids, [Address("resid_post", 1)])

        return {
            "a block that does not exist": ("SteerSpec(vector, layer=99)", lambda: steered(layer=99)),
            "a name that does not exist": ("SteerSpec(vector, layer=1, point='resid_pots')", lambda: steered(point="resid_pots")),
            "a name to read that does not exist": (
                "capture(model, ids, [Address('resid_pots', 1)])",
                lambda: read(self.model, ids, [Address("resid_pots", 1)]),
            ),
            "a position beyond the text, excluded from steering": ("steer(model, specs, position_mask=[99])", masked),
            "a misspelled field": ("SteerSpec(vector, layer=1, coef=2.0)", lambda: steered(coef=2.0)),
        }
