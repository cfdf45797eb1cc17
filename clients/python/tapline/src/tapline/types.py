"""What the services accept and answer, for type checkers: each is a plain dictionary.

Generated from src/contracts and src/operations by `npm run generate`.
"""

from __future__ import annotations

from typing import Any, Literal, TYPE_CHECKING, TypedDict, overload

if TYPE_CHECKING:
    import os

    from ._job import Job

Operation = Literal[
    "inspect", "compare", "probe", "sae", "features", "extract", "drift", "patch_sweep", "explain"
]
Status = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
Split = Literal["train", "test"]
BlockPoint = Literal["block_in", "attn_out", "mid", "ffn_out", "block_out"]
ChangedPoint = Literal["block_in", "head_out", "attn_out", "mid", "ffn_out", "block_out"]
ModelPoint = Literal["block_in", "attention", "head_out", "attn_out", "mid", "router", "ffn_out", "block_out"]


class Health(TypedDict):
    status: Literal["ok"]
    api_version: Literal[1]
    version: str
    operations: list[Operation]
    points: list[ModelPoint]
    """Points of a block that experiments know; which a model has, its own list says."""
    limits: dict[str, float]
    active_job: str | None
    """Id of the running job."""
    queued: int
    queue_capacity: int
    """Waiting places of this service."""
    backend: str


class PatchGrowth(TypedDict):
    """What of a patch sweep is known while it runs; told of a single job, not in lists."""

    pair: int
    """Index of the pair that is being patched."""
    pairs: int
    layers: list[int]
    points: list[ChangedPoint]
    positions: list[int]
    """Token indices of this pair."""
    clean: list[str]
    """The tokens there."""
    corrupted: list[str]
    recovery: list[float | None]
    """Layer by layer, point by point; None where it is still to be computed."""


class _ProgressRequired(TypedDict):
    stage: str
    """What the job is doing."""
    done: float
    total: float
    """0 where the extent is not known."""


class Progress(_ProgressRequired, total=False):
    growth: PatchGrowth


class _JobSummaryRequired(TypedDict):
    id: str
    created: float
    """When it was submitted, in Unix seconds."""
    started: float | None
    """When its worker started; None before."""
    ended: float | None
    """When it reached its last state; None before."""
    status: Status
    operation: Operation
    model: str
    progress: Progress


class JobSummary(_JobSummaryRequired, total=False):
    error: str
    """Why it failed or ended early: one sentence."""


class InspectSubmissionAttention(TypedDict, total=False):
    layers: list[int]
    """Blocks whose attention is kept; otherwise the submission's layers."""
    heads: list[int]
    """Of each of them; otherwise all."""


class _InspectSubmissionRequired(TypedDict):
    operation: Literal["inspect"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""
    prompt: str
    """Raw text; no chat template is applied."""


class InspectSubmission(_InspectSubmissionRequired, total=False):
    """Look inside one forward pass over a prompt."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens: the lens tells its probability and rank
    at every token."""
    follow_answer: bool
    """In its place: probability and rank of the model's own answer after the last token."""
    lens: str
    """A lens that is kept by name (tapline lens): read each of the layers through it, too, before the model's
    own final norm and head."""
    measures: bool
    """Also the entropy of what is read at each token, and how far the model's output is from it (KL), both in
    nats. With a lens unless told otherwise."""
    points: list[Literal["block_in", "attn_out", "mid", "ffn_out"]]
    """Points of each of the layers beside its output: block_in, the residual stream before it; attn_out, what
    attention adds; mid, the stream then; ffn_out, what the MLP or the experts add. A model that has one of
    them not is refused."""
    attention: InspectSubmissionAttention
    """How much each token reads of each, after the softmax, as attention.npz, [heads, tokens, tokens] a
    layer, with what each head read; and what each head looks at, as figures."""
    routing: bool
    """Of models with experts: also which experts each of the layers chose for each token, and their weights,
    as routing.npz. A model or a layer without a router that can be read is refused."""
    decompose: bool
    """Also the direct contribution of every block's attention and MLP to one logit after the last token: the
    target's, or that of the model's answer."""


class Candidate(TypedDict):
    token_id: int
    token: str
    probability: float


class Standing(TypedDict):
    """Where a token stands in a prediction over the whole vocabulary."""

    probability: float
    rank: int
    """1 is the most probable token; ties by token id."""


class _TranslatedReadingRequired(TypedDict):
    predictions: list[list[Candidate]]
    """The top 3 candidates, one list a token."""


class TranslatedReading(_TranslatedReadingRequired, total=False):
    """What the named lens reads of a block's output."""

    target: list[Standing]
    """As of the logit lens."""
    entropies: list[float]
    """Entropy of what is read at each token, in nats."""
    divergences: list[float]
    """How far the model's output at each token is from it: KL(output, reading), in nats."""


class _InspectLayerRequired(TypedDict):
    layer: int
    norms: list[float]
    """L2 norm of the block output, one a token."""


class InspectLayer(_InspectLayerRequired, total=False):
    predictions: list[list[Candidate]]
    """Logit lens: the top 3 candidates, one list a token."""
    target: list[Standing]
    """Logit lens: where the target token stands, one a token where the request named it; of the model's
    answer, after the last token alone."""
    entropies: list[float]
    """Entropy of what is read at each token, in nats."""
    divergences: list[float]
    """How far the model's output at each token is from it: KL(output, reading), in nats."""
    translated: TranslatedReading
    note: str
    """Why there are no predictions."""


class _MeasuredLayerRequired(TypedDict):
    layer: int
    norms: list[float]
    """L2 norm of the block output, one a token."""


class MeasuredLayer(_MeasuredLayerRequired, total=False):
    """What every block's output is measured for."""

    predictions: list[list[Candidate]]
    """Logit lens: the top 3 candidates, one list a token."""
    target: list[Standing]
    """Logit lens: where the target token stands, one a token where the request named it; of the model's
    answer, after the last token alone."""


class _InspectPointRequired(TypedDict):
    layer: int
    point: Literal["block_in", "attn_out", "mid", "ffn_out"]
    norms: list[float]
    """L2 norm, one a token."""


class InspectPoint(_InspectPointRequired, total=False):
    """A point inside a block."""

    predictions: list[list[Candidate]]
    """Logit lens, of block_in and mid: what is added to the stream is no state to predict from."""
    target: list[Standing]
    """As of a layer."""
    entropies: list[float]
    """Entropy of what is read at each token, in nats."""
    divergences: list[float]
    """How far the model's output at each token is from it: KL(output, reading), in nats."""


class Read(TypedDict):
    position: int
    weight: float


class AttentionHead(TypedDict):
    """What a head looks at: shares of its attention in this text."""

    layer: int
    head: int
    previous: float | None
    """What tokens read of the token before them, on average."""
    first: float | None
    """What tokens read of the first one, where a head rests, on average."""
    own: float
    """What tokens read of themselves, on average."""
    induction: float | None
    """What a token that was there before reads of the token behind its first occurrence; None where none
    comes again, on average."""
    last: list[Read]
    """What the last token reads most."""


class Routing(TypedDict):
    """Which experts a layer's router chose."""

    layer: int
    experts: int
    """Experts to choose from."""
    used: int
    """Experts of a token."""
    shares: list[float]
    """Of each expert, its share of all choices in this text; they sum to 1."""
    chosen: list[list[int]]
    """Of each token its experts, the best first."""
    weights: list[list[float]]
    """What the layer multiplies their outputs by."""


class BlockContributions(TypedDict):
    layer: int
    attention: float
    mlp: float


class Decomposition(TypedDict):
    """Direct contributions to one logit (direct logit attribution), with the final norm's scale kept as it
    is."""

    target_token: str
    target_token_id: int
    logit: float
    """The model's own, after the last token."""
    sum: float
    """Of everything below. What it differs by is the rounding of the model's own product."""
    embedding: float
    """Of what goes into the first block."""
    constant: float
    """Of the final norm's and the head's biases."""
    blocks: list[BlockContributions]
    """Every block, from the first."""


class InspectLens(TypedDict):
    name: str
    kind: str
    """jacobian, tuned or regression."""
    sha256: str
    """Of its numbers."""


class ResolvedModel(TypedDict):
    path: str
    """File that was loaded."""
    repository: str | None
    commit: str | None


class WeightFile(TypedDict):
    name: str
    bytes: int
    modified_ns: str
    """Nanoseconds since 1970, as decimal digits."""


class Provenance(TypedDict):
    config_sha256: str
    """SHA-256 of the configuration as JSON with sorted keys."""
    seed: int
    hook: Literal["block output"]
    input_mode: Literal["raw text"]
    layers: list[int]
    versions: dict[str, str]
    """Runtime versions."""
    requested_model: str
    requested_revision: str | None
    resolved_model: ResolvedModel
    architecture: str
    quantization: str
    n_layer: int
    n_embd: int
    weights: list[WeightFile]
    """Size and time of each weight file; not a checksum."""
    seconds: dict[str, float]
    """Seconds by stage."""
    device: str


class _InspectResultRequired(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    layers: list[InspectLayer]
    """The selected layers."""
    next_tokens: list[Candidate]
    """The model's top 5 after the last token."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class InspectResult(_InspectResultRequired, total=False):
    all_layers: list[MeasuredLayer]
    """Every layer, from the first: norms of all tokens, and the logit lens. Layers whose output cannot be
    read are missing."""
    all_layers_from: int
    """First token that the lens reads in all_layers: 0, unless all tokens at all layers are more than 16384
    activations."""
    points: list[InspectPoint]
    """Layer by layer, and point by point, as asked for."""
    attention: list[AttentionHead]
    """Layer by layer, and head by head, as asked for."""
    routing: list[Routing]
    """Layer by layer, as asked for."""
    decomposition: Decomposition
    lens: InspectLens
    """The stored lens that was used."""
    target_token: str
    """The token that the lens follows, where one was asked for."""
    target_token_id: int


class _CompareSubmissionRequired(TypedDict):
    operation: Literal["compare"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""


class CompareSubmission(_CompareSubmissionRequired, total=False):
    """Compare the model with and without an intervention at the first selected layer."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    prompt: str
    """Raw text; no chat template is applied."""
    intervention: Literal["scale", "ablate", "patch", "steer", "project_out", "clamp", "swap"]
    """How a row h of the block output changes at strength s on every forward pass: scale s*h; ablate (1-s)*h;
    patch (1-s)*h + s*donor; steer h + s*u; project_out h - s*(h.u)u; clamp h + s*(clip(h.u, min, max) -
    h.u)u, or with a feature of activation f and decoder row d h + s*(clip(f, min, max) - f)d; swap moves h to
    where two tokens' coordinates are exchanged. u is the unit direction of positive against negative."""
    strengths: list[float]
    """Neutral: 1 for scale, 0 for all others. From -5 to 5; for steer in the unit vector to ±100, in row_norm
    to ±10; for clamp from 0 to 1, by default 0, 0.5, 1."""
    strength_unit: Literal["unit", "vector", "row_norm"]
    """What a strength of 1 adds in steer: the unit vector (default), the difference as it is (vector), or as
    much as the row is long (row_norm), which means the same in every model. Also the unit of min and max."""
    positions: Literal["last", "all", "prompt", "generated"] | list[list[int]]
    """Tokens whose rows are changed: the last one of each forward pass, which is the prompt's last token and
    every generated one (last, the default), all, prompt, generated, or ranges [first, last] of token indices,
    both included, negative from the end of the prompt."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens; otherwise the baseline's top token."""
    prompts: list[str]
    """Prompts to compare; without them the list is [`prompt`]. One of the two is required."""
    donor_prompt: str
    """Donor text; required for patch."""
    positive: str
    """With `negative`, for steer, project_out and clamp: u is their unit difference."""
    negative: str
    """With `positive`, for steer, project_out and clamp."""
    positives: list[str]
    """In place of `positive` and `negative`: u is the unit difference of means."""
    negatives: list[str]
    """With `positives`."""
    feature: list[str | int]
    """[dictionary, index]: a stored dictionary and one of its features, in place of texts: the direction is
    that feature's decoder row."""
    swap: list[str]
    """For swap: two tokens whose coordinates in the lens's directions are exchanged, at every one of the
    layers, with the values that the prompt's own run has there; at strength s the row goes s of the way."""
    lens: str
    """For swap: the stored lens whose directions they are; otherwise the logit lens."""
    min: float
    """For clamp: the least projection on u, in strength_unit; the least activation of a feature."""
    max: float
    """For clamp: the greatest projection on u, or a feature's greatest activation."""
    point: ChangedPoint
    """What of the block is changed: its output (block_out, the default), what its attention or its MLP adds
    (attn_out, ffn_out), the stream before them (block_in, mid), or what its heads read (head_out, for scale,
    ablate and patch)."""
    heads: list[int]
    """Of head_out, the heads that are changed, together; otherwise all."""
    controls: bool
    """Also tries a random vector of the same length, drawn from `seed`, at every strength; for patch, steer,
    project_out, clamp and swap."""


class Change(TypedDict):
    """What the intervention did to the block's output."""

    rows: int
    """Tokens whose rows were changed, over all passes."""
    length: float
    """L2 length of the change, the mean of these rows."""
    row_length: float
    """L2 length of the row before the change, the mean of these rows."""


class ControlTrial(TypedDict):
    """The same with a random vector of the same length in place of the donor's or the direction."""

    probability: float
    delta: float
    output: str
    change: Change


class _TrialRequired(TypedDict):
    prompt: str
    strength: float
    layer: int
    target_token: str
    target_token_id: int
    baseline_probability: float
    probability: float
    delta: float
    baseline: str
    """Greedy continuation without the intervention."""
    output: str
    """Greedy continuation with it."""


class Trial(_TrialRequired, total=False):
    change: Change
    control: ControlTrial


class SwappedToken(TypedDict):
    token: str
    token_id: int


class _CompareResultRequired(TypedDict):
    trials: list[Trial]
    """Prompts, then strengths, in the order given."""
    intervention: Literal["scale", "ablate", "patch", "steer", "project_out", "clamp", "swap"]
    position: str
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class CompareResult(_CompareResultRequired, total=False):
    point: ChangedPoint
    """What of the block was changed, where not its output."""
    heads: list[int]
    layers: list[int]
    """Of a swap, all layers that were changed."""
    swapped: list[SwappedToken]
    """Of a swap, the two tokens."""
    lens: InspectLens
    """The stored lens that was used."""
    strength_unit: Literal["unit", "vector", "row_norm"]
    vector_length: float
    """L2 length of the donor's state, or of the difference of the texts' states."""
    control_seed: int
    """What the random vector was drawn from."""


class _ProbeExampleRequired(TypedDict):
    text: str
    """Raw text."""
    label: Literal[0, 1]
    """Class."""
    split: Split
    """Which side of the held-out split."""


class ProbeExample(_ProbeExampleRequired, total=False):
    prompt: str
    """For rows `response`: raw text that `text` follows as it stands; the row is of what `text` adds to
    it."""


class _ProbeSubmissionRequired(TypedDict):
    operation: Literal["probe"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""
    examples: list[ProbeExample]
    """At least 4 in each split, both classes in each split, no text in both splits."""


class ProbeSubmission(_ProbeSubmissionRequired, total=False):
    """Train a linear probe on final-token block outputs, or on other rows or another point of blocks."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    point: BlockPoint
    """What of each block is read: its output (block_out, the default), what its attention or its MLP adds
    (attn_out, ffn_out), or the stream before them (block_in, mid). A model that has it not is refused."""
    rows: Literal["last", "mean", "response", "all"]
    """Of each example the last token's row (last, the default), the mean of its tokens' rows, which leaves a
    BOS token out (mean), or the mean over the tokens of its text behind its prompt (response), or every
    token's (all), each with its text's label: at most 16384 rows, and 268 MB of them over all layers. Figures
    are of texts, by the mean of their rows' scores, and of rows beside them."""


class ProbeScore(TypedDict):
    text: str
    split: Split
    label: Literal[0, 1]
    score: float


class Interval(TypedDict):
    low: float
    high: float


class Spread(TypedDict):
    """Mean, standard deviation and middle 95 %."""

    low: float
    high: float
    mean: float
    std: float


class ShuffledLabels(TypedDict):
    """What chance gives: probes of permuted training labels."""

    permutations: int
    """How often the training labels were permuted anew."""
    accuracy: Spread
    auc: Spread
    p_accuracy: float
    """Share of permutations at least as accurate, the probe counted as one of them."""
    p_auc: float
    """The same for the AUROC."""


class ProbeRows(TypedDict):
    """For rows all: the same figures of single rows. Labels were permuted among texts, whose rows keep one
    label."""

    accuracy: float
    auc: float
    brier: float
    majority_accuracy: float
    """Held-out accuracy of the training set's majority class."""
    shuffled_label_accuracy: float
    """Held-out accuracy of a probe fitted to one permutation of the training labels."""
    train_size: int
    test_size: int
    accuracy_interval: Interval
    """95 % bootstrap interval over the held-out texts, each with all its rows."""
    auc_interval: Interval
    """95 % bootstrap interval over the held-out texts, each with all its rows."""
    shuffled_labels: ShuffledLabels
    shared_rows: int
    """Held-out rows that a training text has, too: both texts begin with the same tokens up to there."""


class Excluded(TypedDict):
    """Activations that were left out."""

    bos: int
    """Activations of BOS tokens."""
    outliers: int
    """Activations whose norm is above ten times the median norm of their text's, BOS aside."""


class _ProbeReportRequired(TypedDict):
    layer: int
    accuracy: float
    auc: float
    brier: float
    majority_accuracy: float
    """Held-out accuracy of the training set's majority class."""
    shuffled_label_accuracy: float
    """Held-out accuracy of a probe fitted to one permutation of the training labels."""
    train_size: int
    test_size: int
    converged: bool
    iterations: int
    scores: list[ProbeScore]


class ProbeReport(_ProbeReportRequired, total=False):
    accuracy_interval: Interval
    """95 % Wilson interval over the held-out examples."""
    auc_interval: Interval
    """95 % bootstrap interval over the held-out examples; of an AUROC of 0 or 1, an exact bound
    (Clopper-Pearson over as many pairs as the smaller class has examples)."""
    shuffled_labels: ShuffledLabels
    by_row: ProbeRows
    excluded: Excluded
    """For means: activations that they leave out."""


class _ProbeResultRequired(TypedDict):
    reports: list[ProbeReport]
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class ProbeResult(_ProbeResultRequired, total=False):
    point: BlockPoint
    """What of each block was read; absent: its output."""
    rows: Literal["last", "mean", "response", "all"]
    """Which row of each text was read; absent: the last token's."""


class _SaeExampleRequired(TypedDict):
    text: str
    """Raw text."""
    split: Split
    """Which side of the held-out split."""


class SaeExample(_SaeExampleRequired, total=False):
    prompt: str
    """For rows `response`: raw text that `text` follows as it stands; the row is of what `text` adds to
    it."""
    label: Literal[0, 1]
    """Not used."""


# In place of `examples`: a folder on the Lab's machine, from the root, that an extraction was written into.
# Texts are held out by their content.
_SaeSubmissionFrom = TypedDict("_SaeSubmissionFrom", {"from": str}, total=False)


class _SaeSubmissionRequired(TypedDict):
    operation: Literal["sae"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""


class SaeSubmission(_SaeSubmissionFrom, _SaeSubmissionRequired, total=False):
    """Train a small sparse autoencoder on block outputs."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    examples: list[SaeExample]
    """At least 4 in each split, no text in both splits."""
    point: BlockPoint
    """What of each block is read: its output (block_out, the default), what its attention or its MLP adds
    (attn_out, ffn_out), or the stream before them (block_in, mid). A model that has it not is refused. An
    extraction has its own."""
    architecture: Literal["relu", "topk", "batchtopk", "jumprelu"]
    """relu (the default) with an L1 penalty; topk keeps the k most active features of a row; batchtopk those
    of a batch, then a threshold; jumprelu learns a threshold for each feature."""
    rows: Literal["last", "mean", "response", "all"]
    """Of each example the last token's row (last, the default), the mean of its tokens' rows, which leaves a
    BOS token out (mean), or the mean over the tokens of its text behind its prompt (response), or every
    token's (all). An extraction has its own."""
    k: int
    """For topk and batchtopk: features that stay active in a row."""
    batch: int
    """Rows of an optimiser step."""
    learning_rate: float
    """Adam's, after it has risen."""
    warmup: float
    """Share of the steps over which the learning rate rises from 0."""
    decay: float
    """Share of the steps over which it falls to 0, at the end."""
    sparsity: float
    """For relu and jumprelu: weight of the penalty, of the L1 term or of each active feature of a row."""
    features: int
    """Features of the autoencoder."""
    steps: int
    """Optimiser steps."""


class Loss(TypedDict):
    step: int
    loss: float


class FeatureExample(TypedDict):
    text: str
    activation: float


class Feature(TypedDict):
    feature: int
    mean: float
    frequency: float
    examples: list[FeatureExample]


class SaeEvaluation(TypedDict):
    step: int
    explained_variance: float | None
    mean_active: float
    dead_features: int


class SaeDensity(TypedDict):
    least: float
    features: int


class _SaeTrainingRequired(TypedDict):
    steps: int
    batch: int
    """Rows of a step."""
    train_rows: int
    held_out_rows: int
    evaluated_rows: int
    """Held-out rows that the figures are of."""
    learning_rate: float
    sparsity: float
    evaluations: list[SaeEvaluation]
    """Held-out figures on the way."""
    densities: list[SaeDensity]
    """Features by the share of held-out rows in which they fire: how many from `least` to the next bin's."""


class SaeTraining(_SaeTrainingRequired, total=False):
    """Of a training in batches; losses are its batches' errors."""

    k: int
    evaluated_train_rows: int
    """Training rows that train_mse is the mean of: all, or the first of the shuffled order."""


class _SaeReportRequired(TypedDict):
    layer: int
    architecture: Literal["relu", "topk", "batchtopk", "jumprelu"]
    held_out_mse: float
    train_mse: float
    """Of the finished dictionary, on its training data; of a training in batches over
    training.evaluated_train_rows rows."""
    explained_variance: float | None
    """On held-out examples; None, with a note, where these do not vary."""
    mean_active: float
    """Features active on a held-out example, on average."""
    dead_features: int
    """Features active on no held-out example."""
    dead_fraction: float
    losses: list[Loss]
    features: list[Feature]
    """The 16 most active on held-out data; activations are those of the files, whose decoder rows have length
    1."""


class SaeReport(_SaeReportRequired, total=False):
    excluded: Excluded
    """Activations that were left out of the means, or of the rows to train on."""
    training: SaeTraining
    note: str
    """Why a figure is None."""


class _SaeResultRequired(TypedDict):
    reports: list[SaeReport]
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class SaeResult(_SaeResultRequired, total=False):
    point: BlockPoint
    """What of each block was read; absent: its output."""
    rows: Literal["last", "mean", "response", "all"]
    """Which row of each text was read; absent: the last token's."""


class _FeaturesSubmissionRequired(TypedDict):
    operation: Literal["features"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""
    dictionary: str


class FeaturesSubmission(_FeaturesSubmissionRequired, total=False):
    """Read texts through a stored sparse dictionary, and see how well it fits them."""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    prompt: str
    """Raw text; no chat template is applied."""
    texts: list[str]
    """Texts to read in place of `prompt`."""
    top: int
    """Features that the result names of each token; the artifact has all."""
    pages: list[int]
    """Features that are looked at one by one: where they are active, what their decoder rows raise and lower,
    and their neighbours."""
    labels: str
    """With `pages`: what others call features. A file on the Lab's machine, from the root, of Neuronpedia's
    export; or an address that a feature's index is put behind, which is then asked."""


class ReadDictionary(TypedDict):
    name: str
    sha256: str
    layout: str
    activation: str
    features: int
    trained_on: str | None


class FeatureActivation(TypedDict):
    feature: int
    activation: float


class FeatureText(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    top: list[list[FeatureActivation]]
    """The most active features of each token, strongest first."""


class StrongestFeature(TypedDict):
    feature: int
    max: float
    mean: float
    """Over the tokens where it is active."""
    frequency: float
    """Share of the tokens where it is active."""
    text: int
    """Where it is strongest: index in texts,"""
    token: int
    """and token index."""


class ActivationBin(TypedDict):
    least: float
    tokens: int


# The first token that is shown around it.
_FeaturePageExampleFrom = TypedDict("_FeaturePageExampleFrom", {"from": int})


class FeaturePageExample(_FeaturePageExampleFrom):
    text: int
    """Index in texts,"""
    token: int
    """and token index."""
    activation: float
    activations: list[float]
    """Of the tokens from there on."""


class FeatureExampleGroup(TypedDict):
    name: Literal["top", "75-100 %", "50-75 %", "25-50 %", "0-25 %"]
    """The strongest tokens, or some of a quarter of all in which it is active, by rank."""
    examples: list[FeaturePageExample]


class NamedToken(TypedDict):
    token_id: int
    token: str
    effect: float
    """Its logit less the mean of all."""


class _FeatureNeighbourRequired(TypedDict):
    feature: int
    cosine: float


class FeatureNeighbour(_FeatureNeighbourRequired, total=False):
    label: str
    """What others call it."""


class _FeaturePageRequired(TypedDict):
    feature: int
    active_tokens: int
    """Tokens of these texts in which it is active."""
    histogram: list[ActivationBin]
    """Those tokens by activation: how many from `least` to the next bin's."""
    groups: list[FeatureExampleGroup]
    raised: list[NamedToken] | None
    """Tokens that a row which is the feature's decoder row alone makes more probable; None without a logit
    lens."""
    lowered: list[NamedToken] | None
    """Tokens that a row which is the feature's decoder row alone makes less probable; None without a logit
    lens."""
    neighbours: list[FeatureNeighbour]
    """The features whose decoder rows have the largest cosine with its own."""


class FeaturePage(_FeaturePageRequired, total=False):
    label: str
    """What others call it."""


class CrossEntropy(TypedDict):
    clean: float
    reconstructed: float
    ablated: float


class _FidelityRequired(TypedDict):
    tokens: int
    """Tokens that count: a text's BOS token does not."""
    l0: float
    """Features active in a token, on average."""
    explained_variance: float | None
    """1 - sum |x - y|^2 / sum |x - mean x|^2 over these tokens, with y the reconstruction; None where they do
    not vary."""
    cosine: float
    """Between block output and reconstruction, on average."""
    cross_entropy: CrossEntropy | None
    """Of the texts' own next tokens, nats a token: as the model is, with every block output replaced by its
    reconstruction, and by zero. None where there is no next token."""
    loss_recovered: float | None
    """(ablated - reconstructed) / (ablated - clean); None where those two hardly differ."""


class Fidelity(_FidelityRequired, total=False):
    """How well the dictionary fits these texts."""

    excluded: Excluded


class _FeaturesResultRequired(TypedDict):
    dictionary: ReadDictionary
    layer: int
    texts: list[FeatureText]
    features: list[StrongestFeature]
    """The features that become strongest anywhere, strongest first."""
    fidelity: Fidelity
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class FeaturesResult(_FeaturesResultRequired, total=False):
    point: BlockPoint
    """What of each block was read; absent: its output."""
    pages: list[FeaturePage]
    """Of the features that were asked for."""


class _ExtractExampleRequired(TypedDict):
    text: str
    """Raw text."""


class ExtractExample(_ExtractExampleRequired, total=False):
    prompt: str
    """For rows `response`: raw text that `text` follows as it stands; the row is of what `text` adds to
    it."""
    label: Literal[0, 1]
    """Not used."""
    split: Split
    """Which side of the held-out split."""


class _ExtractSubmissionRequired(TypedDict):
    operation: Literal["extract"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""


class ExtractSubmission(_ExtractSubmissionRequired, total=False):
    """Write the block outputs of a data set to disk, in .safetensors files."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    examples: list[ExtractExample]
    data: str
    """In place of `examples`: a file on the Lab's machine, from the root: .txt, a text a line, or .jsonl,
    whose entries are texts or have a `text` or a `prompt`."""
    point: BlockPoint
    """What of each block is read: its output (block_out, the default), what its attention or its MLP adds
    (attn_out, ffn_out), or the stream before them (block_in, mid). A model that has it not is refused."""
    rows: Literal["all", "last", "mean", "response"]
    """Every token's block output, the last token's of each text, their mean, which leaves a BOS token out, or
    the mean of a response behind its prompt; a data file's entries then have both."""
    dtype: Literal["f32", "f16", "bf16"]
    """Numbers in the files."""
    too_long: Literal["refuse", "cut"]
    """What happens to a text of more than max_input_tokens; the result counts those that are cut."""
    shard: list[int]
    """[i, n]: of n machines this is number i, from 0; it takes the texts whose index leaves i when divided by
    n."""
    shard_tokens: int
    """Tokens of a file: what is lost when the machine fails."""
    out: str
    """A folder on the Lab's machine, from the root, that the files are written into (made where the folder
    above is there); where it holds finished files of the same extraction, the job goes on behind them.
    Otherwise they are artifacts."""
    plan: bool
    """Only count texts, tokens and bytes: nothing is computed or written."""


class ExtractedData(TypedDict):
    name: str
    sha256: str


class ExtractResultExcluded(TypedDict):
    layer: int
    bos: int
    """Activations of BOS tokens."""
    outliers: int
    """Activations whose norm is above ten times the median norm of their text's, BOS aside."""


class _ExtractResultRequired(TypedDict):
    folder: str | None
    """Where the files are, on the Lab's machine; None where they are artifacts."""
    index: str | None
    """Name of the file that lists the others; None where only a plan was asked for."""
    data: ExtractedData
    layers: list[int]
    hidden: int
    """Numbers in a row."""
    rows: Literal["all", "last", "mean", "response"]
    dtype: Literal["f32", "f16", "bf16"]
    shard: list[int]
    """[i, n]: the part of the texts that this is."""
    texts: int
    cut_texts: int
    """Texts whose end was left out."""
    tokens: int
    row_count: int
    """Rows of each layer."""
    bytes: int
    """Of all files."""
    files: int
    """Files of rows."""
    kept_files: int
    """Those of them that were there already."""
    tokens_per_second: float | None
    """Of the files that this job made, the disk included; None where it made none."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class ExtractResult(_ExtractResultRequired, total=False):
    point: BlockPoint
    """What of each block was read; absent: its output."""
    excluded: list[ExtractResultExcluded]
    """For means: activations that those of this job's files leave out."""


class _DriftExampleRequired(TypedDict):
    text: str
    """Raw text."""


class DriftExample(_DriftExampleRequired, total=False):
    label: Literal[0, 1]
    """Class; needed for a probe or a vector."""
    split: Split
    """Which side of the held-out split."""


class _DriftSubmissionRequired(TypedDict):
    operation: Literal["drift"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""
    other: str
    """The model that is compared with `model`, named as that is: of one architecture and shape."""
    examples: list[DriftExample]


class DriftSubmission(_DriftSubmissionRequired, total=False):
    """What changes between two models of one architecture, such as a model and its quantised form."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    other_revision: str
    """Pins a hub revision of `other`."""
    dictionary: str
    """A stored dictionary: which features stay active, and what it recovers in each model."""
    probe: str
    """A stored probe: how well it tells the examples' labels in each model."""
    vector: str
    """A stored vector: how well its projections tell the labels in each model."""


class DriftModel(TypedDict):
    name: str
    quantization: str
    bytes: int


class Measured(TypedDict):
    """A figure with its 95 % bootstrap interval: the examples drawn again with replacement."""

    value: float
    low: float
    high: float


class DriftLayer(TypedDict):
    """Means over tokens of a block's output a in the first model and b in the second: cosine of a and b, |b|
    / |a|, |a - b| / |a|."""

    layer: int
    cosine: Measured
    relative_length: Measured
    relative_difference: Measured


class _DriftDictionaryRequired(TypedDict):
    name: str
    sha256: str
    layer: int
    features: int
    jaccard: Measured | None
    l0: list[float]
    """Features active in a token, on average, in the first and in the second model."""
    loss_recovered: list[Measured] | None
    """Share of the loss, in the first and in the second model."""
    loss_recovered_difference: Measured | None


class DriftDictionary(_DriftDictionaryRequired, total=False):
    """jaccard: features active in both models, over those active in one, summed over tokens. None: no feature
    is active, or the loss does not depend on the block."""

    point: BlockPoint
    """What of each block was read; absent: its output."""


class DriftProbe(TypedDict):
    name: str
    sha256: str
    layer: int
    auroc: list[Measured]
    """AUROC of its scores of the last tokens, in the first and in the second model."""
    difference: Measured


class DriftVector(TypedDict):
    """At the first of `layers` that the vector has."""

    name: str
    sha256: str
    layer: int
    separation: list[Measured]
    """AUROC of the last tokens' projections, in the first and in the second model."""
    difference: Measured


class _DriftResultRequired(TypedDict):
    models: list[DriftModel]
    """What was compared, in the first and in the second model."""
    texts: int
    tokens: int
    """Tokens that count: a text's BOS token does not."""
    layers: list[DriftLayer]
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class DriftResult(_DriftResultRequired, total=False):
    dictionary: DriftDictionary
    probe: DriftProbe
    vector: DriftVector


class _PromptPairRequired(TypedDict):
    clean: str
    """Raw text that is answered as it should be."""
    corrupted: str
    """Raw text of as many tokens, unless spans are marked, that is answered otherwise."""


class PromptPair(_PromptPairRequired, total=False):
    target_token: str
    """Text that encodes to exactly one token, without special tokens; otherwise the clean run's most probable
    token."""
    foil_token: str
    """Text that encodes to exactly one token, without special tokens; otherwise the corrupted run's."""


class _PatchSweepSubmissionRequired(TypedDict):
    operation: Literal["patch_sweep"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""


class PatchSweepSubmission(_PatchSweepSubmissionRequired, total=False):
    """Put single block outputs of one prompt into the run of another, or what attention, MLPs or single heads
    add, for each layer and token: where does it happen?"""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    clean: str
    """Raw text that is answered as it should be."""
    corrupted: str
    """Raw text of as many tokens, unless spans are marked, that is answered otherwise."""
    pairs: list[PromptPair]
    """Pairs in place of `clean` and `corrupted`: figures are means over them, with intervals."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens; otherwise the clean run's most probable
    token."""
    foil_token: str
    """Text that encodes to exactly one token, without special tokens; otherwise the corrupted run's."""
    layers: list[int]
    """Zero-based block indices, any number of them; otherwise all blocks."""
    points: list[ChangedPoint]
    """What is put in of each layer: block_out, its output; attn_out and ffn_out, what its attention and its
    MLP add to the residual stream; block_in and mid, the stream before them; head_out, what each head read,
    head by head. A model that has one of them not is refused."""
    heads: list[int]
    """Of head_out, the heads that are patched, each by itself; otherwise all."""
    positions: Literal["aligned"] | list[int]
    """Token indices, negative ones from the end: -1 is the last token. Otherwise every token. Pairs of
    different lengths need negative ones. Or aligned: in both texts of every pair as many spans stand between
    [[ and ]], at most 64, and the last token of each is patched into that of its like; the marks are taken
    out, and the texts may differ in length."""
    direction: Literal["denoise", "noise"]
    """denoise puts states of the clean run into the corrupted run: where is it enough? noise puts states of
    the corrupted run into the clean run: where is it needed?"""
    controls: bool
    """At each site also a random change, drawn from `seed`, as long as the patch's."""


class PatchedSpan(TypedDict):
    text: str
    position: int
    """Index of its last token, which is patched."""


class _PatchedPromptRequired(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    logit_difference: float
    """Logit difference: the target's logit less the foil's."""


class PatchedPrompt(_PatchedPromptRequired, total=False):
    spans: list[PatchedSpan]
    """Of marked texts."""


class PatchPair(TypedDict):
    clean: PatchedPrompt
    corrupted: PatchedPrompt
    restored: float
    """Logit difference of the run that is patched, with a row of its own put back: what batches alone
    change."""
    target_token: str
    target_token_id: int
    foil_token: str
    foil_token_id: int


class Bounds(TypedDict):
    low: float
    high: float


class PatchControl(TypedDict):
    """The same with a random change that is as long as the patch's."""

    logit_difference: float
    """Logit difference: the target's logit less the foil's."""
    change: float
    """It less that of the run that is patched."""
    recovery: float | None
    """The change as a share of the way from the run that is patched to the run that the states are from; None
    where these two differ by less than 1e-6."""


class _PatchSiteRequired(TypedDict):
    layer: int
    position: int
    """As in `positions`."""
    logit_difference: float
    """Logit difference: the target's logit less the foil's."""
    change: float
    """It less that of the run that is patched."""
    recovery: float | None
    """The change as a share of the way from the run that is patched to the run that the states are from; None
    where these two differ by less than 1e-6."""
    change_length: float | None
    """L2 length of the row's change; None where nothing reads the row."""
    row_length: float | None
    """L2 length of the row before it."""


class PatchSite(_PatchSiteRequired, total=False):
    """One point of one block, or one of its heads, at one token; means over the pairs."""

    point: ChangedPoint
    head: int
    """Of head_out, whose part of the row it is."""
    change_interval: Bounds
    """95 % bootstrap interval over the pairs, where there are two or more."""
    recovery_interval: Bounds
    """The same of the recovery."""
    control: PatchControl


class _PatchSweepResultRequired(TypedDict):
    direction: Literal["denoise", "noise"]
    layers: list[int]
    positions: list[int]
    """As asked for: token indices, negative ones from the end; of marked texts the spans' numbers, from 0."""
    pairs: list[PatchPair]
    clean: float
    """Mean logit difference of the clean runs,"""
    corrupted: float
    """of the corrupted runs,"""
    restored: float
    """and of the runs that are patched, with a row of their own put back."""
    sites: list[PatchSite]
    """Layer by layer, point by point, in the order of `layers`, `points` and `positions`; of head_out head by
    head."""
    computed_sites: int
    """Sites and controls that were computed; the others change nothing: nothing reads the row, or both runs
    are the same there."""
    computed_tokens: int
    """Tokens that these took."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class PatchSweepResult(_PatchSweepResultRequired, total=False):
    points: list[ChangedPoint]
    heads: list[int]
    """Of head_out, each of which is a site of its own."""
    control_seed: int
    """What the random changes were drawn from."""


class _ExplainSubmissionRequired(TypedDict):
    operation: Literal["explain"]
    model: str
    """A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model."""
    prompt: str
    """Raw text; no chat template is applied."""
    layer: int
    """Zero-based block index: whose output is put into words."""
    template: str
    """The verbaliser's prompt, with the marker once. Control tokens in it are read, so that it can be in the
    verbaliser's chat format; no template is applied."""
    marker: str
    """Text that is exactly one token of the verbaliser, and is that in the template: in its embedding's place
    stands the row."""


class ExplainSubmission(_ExplainSubmissionRequired, total=False):
    """Put block outputs into words: each stands in a token embedding's place in another model's prompt, which
    says what it is."""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Input token limit of each text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    positions: list[int]
    """Token indices of the prompt, negative ones from the end: each one's row is explained by itself."""
    verbaliser: str
    """The model that is to say what a row is, named as `model` is and as wide; otherwise `model` itself."""
    verbaliser_revision: str
    """Pins a hub revision of `verbaliser`."""
    length: float
    """L2 length that each row is scaled to, which a verbaliser is trained on; otherwise rows stay as they
    are."""
    samples: int
    """Descriptions of each row; more than one need a temperature."""
    temperature: float
    """Of descriptions that are drawn from `seed`; 0: the most probable token each time."""
    description_tokens: int
    """Tokens of a description at most."""
    controls: bool
    """Also what the verbaliser says to each row's numbers in another order, drawn from `seed`, and to no row
    at all."""


class Verbaliser(TypedDict):
    name: str
    quantization: str
    bytes: int
    prompt_tokens: int
    """Of the template, the marked one included."""
    token_scale: float
    """What the model multiplies a typed token's embedding by, and a row that is put in not: 1 for most."""


class Description(TypedDict):
    """What the verbaliser said, once."""

    text: str
    tokens: int
    ended: bool
    """By the verbaliser itself; otherwise it was cut."""


class _ExplainedRowRequired(TypedDict):
    position: int
    """Index of its token, from 0."""
    token: str
    token_id: int
    norm: float
    """L2 length of the block output."""
    descriptions: list[Description]
    """One a sample."""


class ExplainedRow(_ExplainedRowRequired, total=False):
    """One row of the block output, and what the verbaliser said to it."""

    shuffled: list[Description]
    """Of the control: the same numbers in another order, drawn from `seed`."""


class _ExplainResultRequired(TypedDict):
    layer: int
    verbaliser: Verbaliser
    length: float | None
    """L2 length that every row was scaled to; None: as it was."""
    explained: list[ExplainedRow]
    """In the order of `positions`."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class ExplainResult(_ExplainResultRequired, total=False):
    unfilled: list[Description]
    """Of the control without a row: the marker stands in its place, as it is typed."""


class _CapabilitiesRequired(TypedDict):
    serving_activations: bool
    """Whether captures of the resident model are possible."""
    model: str | None
    max_layers: int
    max_input_tokens: int
    n_layer: int | None
    n_embd: int | None
    architecture: str | None
    backend: str
    points: list[ModelPoint]
    """Points that its blocks have, for experiments in a Lab; captures here are of block_out. Attention needs
    a context without flash attention, which the Lab's is."""
    pending: bool
    """Whether a capture is waiting or running."""


class Capabilities(_CapabilitiesRequired, total=False):
    fingerprint: str
    """Of the model's file: stored vectors and probes name the one they were made on."""


class CaptureLayer(TypedDict):
    layer: int
    norms: list[float]


class CaptureResult(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    layers: list[CaptureLayer]
    next_tokens: list[Candidate]
    note: str
    provenance: Provenance


class Submitting:
    """What `Lab` has for each operation."""

    @overload
    def submit(
        self, operation: Literal["inspect"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[InspectResult]: ...
    @overload
    def submit(
        self, operation: Literal["compare"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[CompareResult]: ...
    @overload
    def submit(
        self, operation: Literal["probe"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[ProbeResult]: ...
    @overload
    def submit(
        self, operation: Literal["sae"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[SaeResult]: ...
    @overload
    def submit(
        self, operation: Literal["features"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[FeaturesResult]: ...
    @overload
    def submit(
        self, operation: Literal["extract"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[ExtractResult]: ...
    @overload
    def submit(
        self, operation: Literal["drift"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[DriftResult]: ...
    @overload
    def submit(
        self, operation: Literal["patch_sweep"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[PatchSweepResult]: ...
    @overload
    def submit(
        self, operation: Literal["explain"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[ExplainResult]: ...
    @overload
    def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]: ...
    def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]:
        """Hands an experiment in. It is accepted, not done: wait() for it.

        `model` is "demo", a hub id or the path of a model; a `Path` is made absolute, because the service
        has a working directory of its own. `settings` are the fields of a submission, which the service
        checks: layers, max_input_tokens, max_tokens, seed, revision and those of the operation. Ranges and
        NumPy's arrays and numbers count as lists and numbers; a field that is None counts as absent.
        """
        return self._submit(operation, model, settings)

    def _submit(
        self, operation: str, model: str | os.PathLike[str], settings: dict[str, Any]
    ) -> Job[Any]:
        raise NotImplementedError


class AsyncSubmitting:
    """What `AsyncLab` has for each operation."""

    @overload
    async def submit(
        self, operation: Literal["inspect"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[InspectResult]: ...
    @overload
    async def submit(
        self, operation: Literal["compare"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[CompareResult]: ...
    @overload
    async def submit(
        self, operation: Literal["probe"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[ProbeResult]: ...
    @overload
    async def submit(
        self, operation: Literal["sae"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[SaeResult]: ...
    @overload
    async def submit(
        self, operation: Literal["features"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[FeaturesResult]: ...
    @overload
    async def submit(
        self, operation: Literal["extract"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[ExtractResult]: ...
    @overload
    async def submit(
        self, operation: Literal["drift"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[DriftResult]: ...
    @overload
    async def submit(
        self, operation: Literal["patch_sweep"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[PatchSweepResult]: ...
    @overload
    async def submit(
        self, operation: Literal["explain"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[ExplainResult]: ...
    @overload
    async def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]: ...
    async def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]:
        """Hands an experiment in, as Lab.submit() does."""
        return await self._submit(operation, model, settings)

    async def _submit(
        self, operation: str, model: str | os.PathLike[str], settings: dict[str, Any]
    ) -> Job[Any]:
        raise NotImplementedError
