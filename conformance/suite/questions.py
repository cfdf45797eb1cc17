"""The questions to every engine. Each is a function that yields cases: a name, and a function that raises on a fault."""

import json
import os

import numpy as np

from suite.engine import Edit, Files, NotOffered, by_text, log_softmax
from suite.models import BOS, EOS, MODELS, gguf_path, random_weights
from suite.reference import Reference

HERE = os.path.dirname(os.path.abspath(__file__))

# Relative to the spread of the expected log-probabilities, or to the size of the expected rows.
BOUND = 1e-3
# Quantized weights multiply activations in eight bits in some engines, in 32 in others: on average over tokens. The forms
# are those that move the log-probabilities by more than twice as much, so that an engine with other weights is seen.
FORMS = ("Q4_0", "Q4_K_M", "Q3_K_M")
FORMS_BOUND = 0.1
COUNT = 8


def text(words):
    return [BOS, *words.encode()]


TEXTS = {"capital": text("The capital of France is"), "bird": text("A slow green bird swims."), "short": text("Only nine")}


def middle(model):
    return model.layers // 2


def control_vector(model):
    return 8 * random_weights("control vector", (model.width,))


class Fault(Exception):
    """An engine's answer is wrong; `case` is a request that shows it."""

    def __init__(self, sentence, **case):
        super().__init__(sentence)
        self.case = {name: plain(value) for name, value in case.items()}


def plain(value):
    """For JSON. A vector is named, not listed: it is always the control vector."""
    if isinstance(value, Edit):
        found = {"kind": value.kind, "point": value.point, "layer": value.layer, "text": value.text}
        found["positions"] = "all" if value.positions is None else list(value.positions)
        if value.kind == "scale":
            found["factor"] = value.factor
        return {**found, "vector": "suite.questions.control_vector"} if value.vector is not None else found
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


class Subject:
    """One engine, model by model; a loaded one is reused."""

    def __init__(self, adapter, folder):
        self.adapter, self.folder, self.loaded = adapter, folder, None
        self.references = {}

    def expected(self, name):
        with open(os.path.join(HERE, "..", "models", f"{name}.json")) as file:
            return json.load(file)

    def reference(self, name):
        """The float64 pass, after a comparison with llama.cpp's values."""
        if name not in self.references:
            model, expected = MODELS[name], self.expected(name)
            reference = Reference(model)
            steer = Edit("add", "block_out", middle(model), vector=control_vector(model))
            for want, edits in [(expected["next"]["capital"], []), (expected["steered"], [steer])]:
                distance = apart(reference.run(expected["texts"]["capital"], edits)[0][-1], want)
                if not distance < 1e-4:
                    raise SystemExit(f"{name}: the reference differs from llama.cpp's values by {distance}.")
            self.references[name] = reference
        return self.references[name]

    def engine(self, name, form="F32", chunk=None, draft=False):
        key = (name, form, chunk, draft)
        if self.loaded is None or self.loaded[0] != key:
            self.close()
            folder = os.path.join(self.folder, name)
            path = gguf_path(self.folder, name, form)
            if form != "F32" and not os.path.exists(path):
                raise NotOffered("Not run: the quantized file needs llama-quantize.")
            # The model drafts for itself: all its guesses are right without edits, and few with them.
            draft_path = path if self.adapter.reads == "gguf" else folder
            files = Files(name, path, folder, draft_path, form)
            self.loaded = key, self.adapter(files, chunk=chunk, draft=draft)
        return self.loaded[1]

    def close(self):
        if self.loaded is not None:
            self.loaded[1].close()
            self.loaded = None


def apart(logits, expected):
    """The largest difference of log-probabilities, as a share of the spread of the expected ones."""
    expected = np.asarray(expected)
    found = log_softmax(logits)
    if found.shape != expected.shape:
        return np.inf
    distance = np.abs(found - expected).max() / expected.std()
    return np.inf if np.isnan(distance) else float(distance)


def apart_on_average(logits, expected):
    """The same for the root of the mean square."""
    expected = np.asarray(expected)
    return float(np.sqrt(np.mean((log_softmax(logits) - expected) ** 2)) / expected.std())


def same(logits, expected, what, **case):
    distance = apart(logits, expected)
    if not distance <= BOUND:
        raise Fault(f"{what}: log-probabilities are off by {distance:.2g} of their spread.", **case)


def same_rows(rows, expected, what, **case):
    rows, expected = np.asarray(rows, np.float64), np.asarray(expected)
    if rows.shape != expected.shape:
        raise Fault(f"{what}: shape {list(rows.shape)} instead of {list(expected.shape)}.", **case)
    distance = np.abs(rows - expected).max() / np.abs(expected).max()
    if not distance <= BOUND:
        raise Fault(f"{what}: off by {distance:.2g} of the largest value.", **case)


def rows(subject):
    for name, model in MODELS.items():

        def ask(name=name, model=model):
            expected = subject.expected(name)
            places = [("block_out", layer) for layer in range(model.layers)]
            for label, printed in expected["rows"].items():
                tokens = expected["texts"][label]
                found = subject.engine(name).run([tokens], capture=places)
                for layer, each in enumerate(printed):
                    values = found.rows["block_out", layer][0][-each["rows"] :]
                    wrong = max(abs(values[row][column] - value) for row, column, value in each["values"])
                    total = abs(float(np.sum(values, dtype=np.float64)) - each["sum"]) / float(np.abs(values).sum())
                    size = max(abs(value) for _, _, value in each["values"])
                    if not (wrong <= BOUND * size + 5e-5 and total <= BOUND):
                        raise Fault(f"The output of block {layer} is off by {wrong:.2g}.", model=name, texts=[tokens])

        yield name, ask


def logits(subject):
    for name in MODELS:

        def ask(name=name):
            expected = subject.expected(name)
            for label, tokens in expected["texts"].items():
                (found,) = subject.engine(name).run([tokens]).logits
                same(found, expected["next"][label], "The next token", model=name, texts=[tokens])

        yield name, ask


def edit_of(kind, point, layer, positions, model, text=0):
    vector = control_vector(model) if kind in ("add", "patch") else None
    return Edit(kind, point, layer, positions, vector, factor=-1.5, text=text)


def edits(subject):
    last = len(TEXTS["capital"]) - 1
    for name in ("llama", "gemma3"):
        model = MODELS[name]
        wheres = {"all positions": None, "the first position": (0,), "positions 3 to 5": (3, 4, 5), "the last position": (last,)}
        cases = [(kind, point, 1, "positions 3 to 5") for kind in ("add", "scale", "ablate", "patch") for point in ("attn_out", "ffn_out", "block_out")]
        cases += [("add", "block_out", layer, where) for layer in (0, model.layers - 1) for where in ("all positions", "the last position")]
        cases += [("patch", "attn_out", 2, where) for where in wheres]
        for kind, point, layer, where in cases:
            edit = edit_of(kind, point, layer, wheres[where], model)

            def ask(name=name, edit=edit):
                tokens = TEXTS["capital"]
                want, _ = subject.reference(name).run(tokens, [edit])
                (found,) = subject.engine(name).run([tokens], [edit]).logits
                same(found, log_softmax(want[-1]), "After the edit", model=name, texts=[tokens], edits=[edit])

            yield f"{name}: {kind} at {point}, block {layer}, {where}", ask

        def steer(name=name, model=model):
            expected = subject.expected(name)
            edit = Edit("add", "block_out", middle(model), vector=control_vector(model))
            tokens = expected["texts"]["capital"]
            (found,) = subject.engine(name).run([tokens], [edit]).logits
            same(found, expected["steered"], "After the control vector", model=name, texts=[tokens], edits=[edit])

        yield f"{name}: a control vector, against llama.cpp's", steer


def same_in_batch(subject, name, texts, edits):
    """Every text of a batch has the log-probabilities that it has alone, with its own edits."""
    found = subject.engine(name).run(texts, edits).logits
    for at, (tokens, own) in enumerate(zip(texts, by_text(edits, texts))):
        want = log_softmax(subject.reference(name).run(tokens, own)[0][-1])
        same(found[at], want, f"Text {at} of the batch", model=name, texts=texts, edits=edits)


def isolation(subject):
    model, name = MODELS["llama"], "llama"
    texts = [TEXTS["capital"], TEXTS["capital"], TEXTS["bird"]]
    edit = edit_of("add", "block_out", 1, None, model, text=1)
    partly = edit_of("ablate", "attn_out", 2, (2, 3), model, text=1)
    for label, change in {"an edit of all positions": edit, "an edit of two positions": partly}.items():

        def ask(change=change):
            same_in_batch(subject, name, texts, [change])

        yield f"{label} of one text in a batch", ask

    second = edit_of("patch", "ffn_out", 0, (1,), model, text=2)
    yield "two texts with different edits in a batch", lambda: same_in_batch(subject, name, texts, [edit, second])

    def generated():
        found = subject.engine(name).generate(texts, COUNT, [edit])
        for at, own in enumerate(by_text([edit], texts)):
            continued(subject, name, found[at], texts[at], own, f"Text {at} of the batch", texts=texts, shown=[edit])

    yield "generation next to an edited text", generated


def continued(subject, name, found, tokens, edits, what, texts=None, shown=None):
    want, closest = subject.reference(name).generate(tokens, COUNT, edits)
    if closest < 1e-3 or EOS in want:
        raise SystemExit(f"{what}: two tokens are too close, or the text ends; choose another text.")
    if list(found) != want:
        case = {"model": name, "texts": texts or [tokens], "edits": edits if shown is None else shown}
        raise Fault(f"{what} continues with {list(found)}, not {want}.", **case)


def caches(subject):
    name, model = "llama", MODELS["llama"]
    tokens = TEXTS["capital"]
    longer = [*tokens, *b" Paris, and"]
    edit = edit_of("add", "block_out", 1, (1, 2, 3), model)
    everywhere = edit_of("add", "block_out", 1, None, model)

    def sequence(steps):
        engine = subject.engine(name)
        for step, (mine, edits) in enumerate(steps):
            (found,) = engine.generate([mine], COUNT, edits)
            label = "edited" if edits else "plain"
            continued(subject, name, found, mine, edits, f"Request {step + 1} ({label})")

    yield "an edited text continues from its own cache", lambda: sequence([(tokens, [edit])])
    yield "plain after edited: the same text", lambda: sequence([(tokens, [edit]), (tokens, [])])
    yield "plain after edited: a longer text", lambda: sequence([(tokens, [everywhere]), (longer, [])])
    yield "edited after plain: a cached prompt is edited all the same", lambda: sequence([(tokens, []), (tokens, [edit])])
    yield "edited, then longer with the same edit", lambda: sequence([(tokens, [edit]), (longer, [edit]), (longer, [])])


def padding(subject):
    for name in ("llama", "gpt2"):

        def ask(name=name):
            expected = subject.expected(name)
            texts = list(expected["texts"].values())
            found = subject.engine(name).run(texts).logits
            for at, label in enumerate(expected["texts"]):
                same(found[at], expected["next"][label], f"Text {at} of the batch", model=name, texts=texts)

        yield f"{name}: texts of different lengths in a batch", ask
    model = MODELS["llama"]
    for label, positions in {"the first position": (0,), "position 4": (4,)}.items():

        def edited(positions=positions):
            texts = [TEXTS["capital"], TEXTS["short"]]
            same_in_batch(subject, "llama", texts, [edit_of("patch", "block_out", 1, positions, model, text=1)])

        yield f"llama: an edit of the shorter text, {label}", edited

    def generated():
        texts = [TEXTS["capital"], TEXTS["short"]]
        found = subject.engine("llama").generate(texts, COUNT)
        for at in range(2):
            continued(subject, "llama", found[at], texts[at], [], f"Text {at} of the batch", texts=texts)

    yield "llama: generation from texts of different lengths", generated


def bos(subject):
    for name, begins in {"llama": True, "qwen3": False, "gpt2": False}.items():

        def ask(name=name, begins=begins):
            found = list(subject.engine(name).tokens("The capital"))
            want = text("The capital") if begins else list(b"The capital")
            if found != want:
                asks = "asks for" if begins else "does not ask for"
                raise Fault(f"The tokenizer {asks} BOS, and the ids are {found}.", model=name, text="The capital")

        yield f"{name}: BOS {'is added' if begins else 'is not added'} as the tokenizer says", ask


def chunks(subject):
    name, model = "llama", MODELS["llama"]
    tokens = [*TEXTS["capital"], *b" Paris, and the capital of Japan is"]
    across = edit_of("add", "block_out", 1, tuple(range(12, 21)), model)
    for label, edits in {"without edits": [], "an edit across two chunks": [across], "an edit everywhere": [edit_of("add", "block_out", 1, None, model)]}.items():

        def ask(edits=edits):
            (found,) = subject.engine(name, chunk=16).generate([tokens], COUNT, edits)
            continued(subject, name, found, tokens, edits, "A prompt in chunks of 16 tokens")

        yield label, ask


def drafts(subject):
    name, model = "llama", MODELS["llama"]
    tokens = TEXTS["capital"]
    for label, edits in {
        "without edits": [],
        "an edit of the prompt": [edit_of("add", "block_out", 1, (1, 2, 3), model)],
        "an edit everywhere": [edit_of("add", "block_out", 1, None, model)],
    }.items():

        def ask(edits=edits):
            (found,) = subject.engine(name, draft=True).generate([tokens], COUNT, edits)
            continued(subject, name, found, tokens, edits, "With a draft model, the text")

        yield label, ask


def forms(subject):
    for form in FORMS:

        def ask(form=form):
            expected = subject.expected("llama")
            tokens = expected["texts"]["capital"]
            (found,) = subject.engine("llama", form=form).run([tokens]).logits
            distance = apart_on_average(found, expected["forms"][form])
            if not distance <= FORMS_BOUND:
                case = {"model": "llama", "form": form, "texts": [tokens]}
                raise Fault(f"Log-probabilities are off by {distance:.2g} of their spread.", **case)

        yield form, ask


def attention(subject):
    for name in ("llama", "gemma3"):

        def ask(name=name):
            tokens = TEXTS["capital"]
            places = [("attention", layer) for layer in range(MODELS[name].layers)]
            found = subject.engine(name).run([tokens], capture=places)
            _, want = subject.reference(name).run(tokens)
            for place in places:
                same_rows(found.rows[place][0], want[place], f"Weights of block {place[1]}", model=name, texts=[tokens])

        yield name, ask


def mistakes(subject):
    for case, (request, ask) in subject.engine("llama").mistakes().items():

        def silent(case=case, request=request, ask=ask):
            try:
                said = ask()
            except NotOffered:
                raise
            except Exception:
                return
            if not isinstance(said, str):
                raise Fault("It is answered as if nothing were wrong.", request=request)

        yield case, silent


QUESTIONS = {
    "Block outputs": rows,
    "Next-token probabilities": logits,
    "Edits": edits,
    "Isolation in a batch": isolation,
    "Caches": caches,
    "Padding": padding,
    "BOS": bos,
    "Prompts in chunks": chunks,
    "Draft models": drafts,
    "Quantized forms": forms,
    "Attention weights": attention,
    "Mistakes are reported": mistakes,
}
