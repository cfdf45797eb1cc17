"""nnsight: a trace with one invoke per text; `generate` with an edit at each step."""

import os
from dataclasses import replace

import torch

from engines.torch_rows import changed, first_of, grouped, quiet
from engines.transformers import modules
from suite.engine import Answer, Engine, NotOffered, by_text

ORDER = ["attention", "attn_out", "ffn_out", "block_out"]


class Adapter(Engine):
    package = "nnsight"

    def __init__(self, files, chunk=None, draft=False):
        if draft:
            raise NotOffered("Steps of the draft model cannot be distinguished from those of the model.")
        if chunk:
            raise NotOffered("A trace computes a prompt in one pass.")
        quiet()
        from nnsight import LanguageModel

        options = {"dtype": torch.float32, "attn_implementation": "eager", "dispatch": True}
        if files.form == "F32":
            self.model = LanguageModel(files.folder, **options)
        else:
            options |= {"gguf_file": os.path.basename(files.gguf)}
            self.model = LanguageModel(os.path.dirname(files.gguf), **options)
        names = {id(module): name for name, module in self.model._module.named_modules()}
        self.envoys = {place: self.envoy(names[id(module)]) for place, module in modules(self.model._module).items()}
        self.head = self.model.embed_out if hasattr(self.model, "embed_out") else self.model.lm_head
        attention = "self_attn" if files.name not in ("gpt2", "gptneox") else "attn" if files.name == "gpt2" else "attention"
        for (point, layer), block in list(self.envoys.items()):
            if point == "block_out":
                self.envoys["attention", layer] = getattr(block, attention)

    def envoy(self, name):
        found = self.model
        for part in name.split("."):
            found = found[int(part)] if part.isdigit() else getattr(found, part)
        return found

    def places(self, by_place, capture):
        """In the order of computation, as traces need it."""
        return sorted({*by_place, *capture}, key=lambda place: (place[1], ORDER.index(place[0])))

    def run(self, texts, edits=(), capture=()):
        import nnsight

        with self.model.trace() as tracer:
            seen, logits = nnsight.save([]), nnsight.save([])
            for text, own in zip(texts, by_text(edits, texts)):
                with tracer.invoke(torch.tensor([text])):
                    rows, by_place = {}, grouped(own)
                    for place in self.places(by_place, capture):
                        module = self.envoys[place]
                        if place[0] == "attention":
                            rows[place] = module.output[1].clone()
                            continue
                        output = module.output
                        value = first_of(output)
                        # Counted from the end of the text, as batches are padded in front.
                        first = value.shape[1] - len(text)
                        new = changed(value, [one_text(edit) for edit in by_place.get(place, [])], [first])
                        rows[place] = new
                        module.output = (new, *output[1:]) if isinstance(output, tuple) else new
                    seen.append(rows)
                    logits.append(self.head.output.clone())
        found = {}
        for place in {place for rows in seen for place in rows}:
            found[place] = []
            for rows, text in zip(seen, texts):
                value = rows.get(place)
                size = len(text)
                if value is not None:
                    value = (value[0][:, -size:, -size:] if place[0] == "attention" else value[0][-size:]).numpy()
                found[place].append(value)
        return Answer([each[0, -1].numpy() for each in logits], found)

    def generate(self, texts, count, edits=()):
        import nnsight

        each = [grouped(own) for own in by_text(edits, texts)]
        with self.model.generate(max_new_tokens=count, min_new_tokens=count, do_sample=False) as tracer:
            for text, by_place in zip(texts, each):
                with tracer.invoke(torch.tensor([text])):
                    done = 0
                    for _ in tracer.iter[:count]:
                        for place in self.places(by_place, ()):
                            output = self.envoys[place].output
                            value = first_of(output)
                            first = 0 if done else value.shape[1] - len(text)
                            new = changed(value, [one_text(edit) for edit in by_place[place]], [first], done)
                            self.envoys[place].output = (new, *output[1:]) if isinstance(output, tuple) else new
                        done = len(text) if done == 0 else done + 1
            with tracer.invoke():
                found = nnsight.save(tracer.result)
        return found[:, -count:].tolist()

    def tokens(self, text):
        return self.model.tokenizer(text)["input_ids"]

    def mistakes(self):
        ids = torch.tensor([[256, 84, 104]])

        def traced(reach, **more):
            with self.model.trace(ids, **more):
                reach()

        return {
            "a block that does not exist": (
                "model.model.layers[99].output",
                lambda: traced(lambda: self.model.model.layers[99].output.clone()),
            ),
            "a name that does not exist": (
                "model.model.layers[0].mpl.output",
                lambda: traced(lambda: self.model.model.layers[0].mpl.output.clone()),
            ),
            "a misspelled field": (
                "model.trace(ids, output_hidden_state=True)",
                lambda: traced(lambda: None, output_hidden_state=True),
            ),
            "a position beyond the text": (
                "model.model.layers[0].output[:, 99]",
                lambda: traced(lambda: self.model.model.layers[0].output[:, 99].clone()),
            ),
        }


def one_text(edit):
    """The same edit in an invoke, which has one text."""
    return replace(edit, text=0)
