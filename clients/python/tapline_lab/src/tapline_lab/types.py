"""Requests and responses of the services, for type checkers: each is a plain dictionary.

Generated from src/contracts and src/operations by `npm run generate`.
"""

from __future__ import annotations

from typing import Any, Literal, TYPE_CHECKING, TypedDict, overload

if TYPE_CHECKING:
    import os

    from ._job import Job

Operation = Literal[
    "inspect", "compare", "probe", "sae", "features", "extract", "drift", "patch_sweep", "explain", "graph"
]
Status = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
Split = Literal["train", "test"]
BlockPoint = Literal["block_in", "attn_out", "mid", "ffn_in", "ffn_out", "block_out"]
ChangedPoint = Literal["block_in", "head_out", "attn_out", "mid", "ffn_in", "ffn_out", "block_out"]
ModelPoint = Literal[
    "block_in", "attention", "head_out", "attn_out", "mid", "ffn_in", "router", "ffn_out", "block_out"
]


class Health(TypedDict):
    status: Literal["ok"]
    api_version: Literal[1]
    version: str
    operations: list[Operation]
    points: list[ModelPoint]
    """Points of a block that experiments support; each model lists those it has."""
    limits: dict[str, float]
    active_job: str | None
    """Id of the running job."""
    queued: int
    queue_capacity: int
    """Number of jobs that may wait."""
    backend: str


class PatchGrowth(TypedDict):
    """Partial results of a running patch sweep; included for a single job, not in lists."""

    pair: int
    """Index of the pair being patched."""
    pairs: int
    layers: list[int]
    points: list[ChangedPoint]
    positions: list[int]
    """Token indices of this pair."""
    clean: list[str]
    """The tokens at these positions."""
    corrupted: list[str]
    recovery: list[float | None]
    """Layer by layer, point by point; None if not computed yet."""


class _ProgressRequired(TypedDict):
    stage: str
    """Current stage of the job."""
    done: float
    total: float
    """0 if unknown."""


class Progress(_ProgressRequired, total=False):
    growth: PatchGrowth


class _JobSummaryRequired(TypedDict):
    id: str
    created: float
    """When it was submitted, in Unix seconds."""
    started: float | None
    """When its worker started; None until then."""
    ended: float | None
    """When it reached a final state; None until then."""
    status: Status
    operation: Operation
    model: str
    progress: Progress


class JobSummary(_JobSummaryRequired, total=False):
    error: str
    """One sentence: why it failed or ended early."""


class InspectSubmissionAttention(TypedDict, total=False):
    layers: list[int]
    """Blocks whose attention is recorded. Default: the submission's layers."""
    heads: list[int]
    """Heads of each of these blocks. Default: all."""


class _InspectSubmissionRequired(TypedDict):
    operation: Literal["inspect"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""


class InspectSubmission(_InspectSubmissionRequired, total=False):
    """Inspect one forward pass over a prompt."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    prompt: str
    """Raw text; no chat template is applied. Either this or tokens."""
    tokens: list[int]
    """Instead of a prompt: the model's token ids, run exactly as given. No special tokens are added."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens. The lens reports its probability and
    rank at every token."""
    follow_answer: bool
    """Instead of target_token: report the probability and rank of the model's own answer, after the last
    token only."""
    lens: str
    """Name of a saved lens (see `tapline lens`): also read each layer through it, before the model's own
    final norm and output head."""
    measures: bool
    """Also report each reading's entropy and its KL divergence from the model's output, both in nats.
    Default: only if lens is given."""
    points: list[Literal["block_in", "attn_out", "mid", "ffn_in", "ffn_out"]]
    """Hook points inside each layer, in addition to its output: block_in, the residual stream into it;
    attn_out, what attention adds; mid, the residual stream after attention; ffn_in, that stream after the
    norm, as the MLP reads it; ffn_out, what the MLP or the experts add. Models without one of these points
    are rejected."""
    attention: InspectSubmissionAttention
    """Attention weights after the softmax, as attention.npz ([heads, tokens, tokens] per layer, with the
    heads' outputs), and a summary of what each head attends to."""
    routing: bool
    """For mixture-of-experts models: also record which experts each layer chose for each token, and their
    weights, as routing.npz. Models and layers without a readable router are rejected."""
    decompose: bool
    """Direct logit attribution: also report the direct contribution of every block's attention and MLP to one
    logit after the last token, the target's or the model's answer's."""


class Candidate(TypedDict):
    token_id: int
    token: str
    probability: float


class Standing(TypedDict):
    """A token's rank and probability in a prediction over the whole vocabulary."""

    probability: float
    rank: int
    """1 is the most probable token; ties by token id."""


class _TranslatedReadingRequired(TypedDict):
    predictions: list[list[Candidate]]
    """The top 3 candidates, one list per token."""


class TranslatedReading(_TranslatedReadingRequired, total=False):
    """The named lens's readings of a block's output."""

    target: list[Standing]
    """As for the logit lens."""
    entropies: list[float]
    """Entropy of the reading at each token, in nats."""
    divergences: list[float]
    """KL(output ‖ reading) at each token, in nats."""


class _InspectLayerRequired(TypedDict):
    layer: int
    norms: list[float]
    """L2 norm of the block output, one per token."""


class InspectLayer(_InspectLayerRequired, total=False):
    predictions: list[list[Candidate]]
    """Logit lens: the top 3 candidates, one list per token."""
    target: list[Standing]
    """Logit lens: rank and probability of the target token, one per token if the request named it. For the
    model's answer: after the last token only."""
    entropies: list[float]
    """Entropy of the reading at each token, in nats."""
    divergences: list[float]
    """KL(output ‖ reading) at each token, in nats."""
    translated: TranslatedReading
    note: str
    """Why there are no predictions."""


class _MeasuredLayerRequired(TypedDict):
    layer: int
    norms: list[float]
    """L2 norm of the block output, one per token."""


class MeasuredLayer(_MeasuredLayerRequired, total=False):
    """What every block's output is measured for."""

    predictions: list[list[Candidate]]
    """Logit lens: the top 3 candidates, one list per token."""
    target: list[Standing]
    """Logit lens: rank and probability of the target token, one per token if the request named it. For the
    model's answer: after the last token only."""


class _InspectPointRequired(TypedDict):
    layer: int
    point: Literal["block_in", "attn_out", "mid", "ffn_in", "ffn_out"]
    norms: list[float]
    """L2 norm, one per token."""


class InspectPoint(_InspectPointRequired, total=False):
    """A hook point inside a block."""

    predictions: list[list[Candidate]]
    """Logit lens for block_in and mid. attn_out, ffn_in and ffn_out have none, because they are not the
    residual stream."""
    target: list[Standing]
    """As for a layer."""
    entropies: list[float]
    """Entropy of the reading at each token, in nats."""
    divergences: list[float]
    """KL(output ‖ reading) at each token, in nats."""


class Read(TypedDict):
    position: int
    weight: float


class AttentionHead(TypedDict):
    """What a head attends to: shares of its attention in this text."""

    layer: int
    head: int
    previous: float | None
    """Attention to the previous token, mean over tokens."""
    first: float | None
    """Attention to the first token, where idle heads park, mean over tokens."""
    own: float
    """Attention of tokens to themselves, mean over tokens."""
    induction: float | None
    """Attention of a repeated token to the token after its first occurrence; None if no token is repeated,
    mean over tokens."""
    last: list[Read]
    """The positions that the last token attends to most."""


class Routing(TypedDict):
    """Which experts a layer's router chose."""

    layer: int
    experts: int
    """Experts to choose from."""
    used: int
    """Experts per token."""
    shares: list[float]
    """Each expert's share of all choices in this text; the shares sum to 1."""
    chosen: list[list[int]]
    """The experts of each token, best first."""
    weights: list[list[float]]
    """The weights of their outputs."""


class BlockContributions(TypedDict):
    layer: int
    attention: float
    mlp: float


class Decomposition(TypedDict):
    """Direct logit attribution: direct contributions to one logit, with the final norm's scale frozen."""

    target_token: str
    target_token_id: int
    logit: float
    """The model's logit after the last token."""
    sum: float
    """Sum of all contributions below. It differs from the logit only by rounding in the model's output
    head."""
    embedding: float
    """Contribution of the input to the first block."""
    constant: float
    """Contribution of the biases of the final norm and the output head."""
    blocks: list[BlockContributions]
    """All blocks, in order."""


class InspectLens(TypedDict):
    name: str
    kind: str
    """jacobian, tuned or regression."""
    sha256: str
    """Hash of its weights."""


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
    input_mode: Literal["raw text", "token ids"]
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
    """In the order of `layers`, then `points`."""
    attention: list[AttentionHead]
    """Layer by layer, then head by head, in the requested order."""
    routing: list[Routing]
    """Layer by layer, in the requested order."""
    decomposition: Decomposition
    lens: InspectLens
    """The saved lens that was used."""
    target_token: str
    """The token that the lens tracks, if requested."""
    target_token_id: int


class _CompareSubmissionRequired(TypedDict):
    operation: Literal["compare"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""


class CompareSubmission(_CompareSubmissionRequired, total=False):
    """Compare the model with and without an intervention at the first selected layer."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    prompt: str
    """Raw text; no chat template is applied."""
    intervention: Literal["scale", "ablate", "patch", "steer", "project_out", "clamp", "swap"]
    """How an activation h at the block's output changes at strength s in every forward pass: scale s*h;
    ablate (1-s)*h; patch (1-s)*h + s*donor; steer h + s*u; project_out h - s*(h.u)u; clamp h + s*(clip(h.u,
    min, max) - h.u)u, or with a feature of activation f and decoder row d h + s*(clip(f, min, max) - f)d;
    swap moves h to the point where two tokens' coordinates are exchanged. u is the unit direction from
    negative to positive."""
    strengths: list[float]
    """Neutral: 1 for scale, 0 for all others. From -5 to 5; for steer in unit vector up to ±100, in unit
    row_norm up to ±10; for clamp from 0 to 1, by default 0, 0.5, 1."""
    strength_unit: Literal["unit", "vector", "row_norm"]
    """What strength 1 adds for steer: the unit vector (unit, the default), the raw difference (vector), or
    the direction at the norm of the activation (row_norm), which is comparable between models. Also the unit
    of min and max."""
    positions: Literal["last", "all", "prompt", "generated"] | list[list[int]]
    """Tokens to edit: the last token of each forward pass, which is the last prompt token and every generated
    token (last, the default), all, prompt, generated, or ranges [first, last] of token indices, both
    included; negative indices count from the end of the prompt."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens. Default: the baseline's top token."""
    prompts: list[str]
    """Prompts to compare, instead of the single `prompt`. One of the two fields is required."""
    donor_prompt: str
    """Donor text; required for patch."""
    positive: str
    """With `negative`, for steer, project_out and clamp: u is the unit vector of their difference."""
    negative: str
    """With `positive`, for steer, project_out and clamp."""
    positives: list[str]
    """Instead of `positive`: u is the unit vector of the difference of the two means."""
    negatives: list[str]
    """Instead of `negative`; requires `positives`."""
    feature: list[str | int]
    """[dictionary, index]: a saved dictionary and one of its features. The feature's decoder row is the
    direction, instead of texts."""
    swap: list[str]
    """For swap: two tokens whose coordinates along the lens's directions are exchanged at each layer, using
    the values from the unmodified run of the prompt. Strength s moves the activation the fraction s of the
    way."""
    lens: str
    """For swap: the saved lens that defines the directions. Default: the logit lens."""
    min: float
    """For clamp: lower bound of the projection on u, in strength_unit, or of a feature's activation."""
    max: float
    """For clamp: upper bound of the projection on u, or of a feature's activation."""
    point: ChangedPoint
    """Hook point to change: the block's output (block_out, the default), what its attention or MLP adds
    (attn_out, ffn_out), the residual stream before each (block_in, mid), the MLP's input (ffn_in), or the
    outputs of its heads (head_out, for scale, ablate and patch)."""
    heads: list[int]
    """For head_out: the heads to change, all in the same run. Default: all heads."""
    controls: bool
    """Also runs a control at every strength: a norm-matched random vector drawn from `seed`. For patch,
    steer, project_out, clamp and swap."""


class Change(TypedDict):
    """What the intervention did to the block's output."""

    rows: int
    """Number of edited token positions, over all passes."""
    length: float
    """L2 norm of the change, mean over these positions."""
    row_length: float
    """L2 norm of the activation before the change, mean over these positions."""


class ControlTrial(TypedDict):
    """The same trial with a norm-matched random vector instead of the donor's activation or the direction."""

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
    """The hook point that was changed, if not block_out."""
    heads: list[int]
    layers: list[int]
    """For swap: all layers that were changed."""
    swapped: list[SwappedToken]
    """For swap: the two tokens."""
    lens: InspectLens
    """The saved lens that was used."""
    strength_unit: Literal["unit", "vector", "row_norm"]
    vector_length: float
    """L2 norm of the donor's activation, or of the difference between the texts' activations."""
    control_seed: int
    """Seed of the random vector."""


class _ProbeExampleRequired(TypedDict):
    text: str
    """Raw text."""
    label: Literal[0, 1]
    """Class."""
    split: Split
    """Whether the example is for training or held out."""


class ProbeExample(_ProbeExampleRequired, total=False):
    prompt: str
    """For rows `response`: raw text that `text` directly follows; activations are read over the tokens that
    `text` adds."""


class ProbeGrid(TypedDict, total=False):
    """One more probe for each combination of layer, point, position and C, with the same examples. Only with
    the last tokens' activations, and at most 1024 probes."""

    points: list[BlockPoint]
    """Points of each block. Default: `point`."""
    positions: list[int]
    """Tokens of each text, counted from its end: -1 is the last one (default)."""
    c: list[float]
    """Inverse strengths of the L2 penalty, scikit-learn's C. Default: 1."""


class _ProbeSubmissionRequired(TypedDict):
    operation: Literal["probe"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""
    examples: list[ProbeExample]
    """At least 4 per split, both classes in each split, and no text in both splits."""


class ProbeSubmission(_ProbeSubmissionRequired, total=False):
    """Train a linear probe on the block outputs of last tokens, or on activations of other tokens or hook
    points."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    point: BlockPoint
    """Point of each block to read: its output (block_out, default), its attention or MLP output (attn_out,
    ffn_out), the stream before these (block_in, mid), or the MLP's input (ffn_in). Models without this point
    are refused."""
    rows: Literal["last", "mean", "response", "all"]
    """Of each example the last token's activation (last, the default), the mean over its tokens, without a
    BOS token (mean), or the mean over the tokens of its text after its prompt (response), or every token's
    (all), each labelled like its text: at most 16384 activations, and 268 MB over all layers. Results are
    reported per text (mean of its scores) and also per activation."""
    grid: ProbeGrid


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
    """Chance level: probes trained on permuted labels."""

    permutations: int
    """Number of permutations of the training labels."""
    accuracy: Spread
    auc: Spread
    p_accuracy: float
    """Share of permutations that are at least as accurate, counting the probe itself as one."""
    p_auc: float
    """The same for the AUROC."""


class ProbeRows(TypedDict):
    """For rows all: the same values per activation. Labels are permuted among texts; all activations of a
    text keep one label."""

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
    """95 % bootstrap interval over the held-out texts, each with all its activations."""
    auc_interval: Interval
    """95 % bootstrap interval over the held-out texts, each with all its activations."""
    shuffled_labels: ShuffledLabels
    shared_rows: int
    """Held-out activations that also occur in a training text, because both texts start with the same
    tokens."""


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
    """For means: activations that they exclude."""


class ProbeCellAccuracyInterval(TypedDict):
    low: float
    high: float


class ProbeCellAucInterval(TypedDict):
    low: float
    high: float


class ProbeCell(TypedDict):
    """A probe of the grid; its weights are not saved."""

    layer: int
    point: BlockPoint
    position: int
    c: float
    accuracy: float
    auc: float
    brier: float
    majority_accuracy: float
    shuffled_label_accuracy: float
    train_size: int
    test_size: int
    converged: bool
    accuracy_interval: ProbeCellAccuracyInterval
    """95 % Wilson interval over the held-out examples."""
    auc_interval: ProbeCellAucInterval
    """95 % interval, as in the reports."""


class _ProbeResultRequired(TypedDict):
    reports: list[ProbeReport]
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class ProbeResult(_ProbeResultRequired, total=False):
    point: BlockPoint
    """Point of each block that was read; if absent, its output."""
    rows: Literal["last", "mean", "response", "all"]
    """Which activation of each text was read; if absent, the last token's."""
    grid: list[ProbeCell]
    """By point, position, layer and C, in the order of the request."""


class _SaeExampleRequired(TypedDict):
    text: str
    """Raw text."""
    split: Split
    """Whether the example is for training or held out."""


class SaeExample(_SaeExampleRequired, total=False):
    prompt: str
    """For rows `response`: raw text that `text` directly follows; activations are read over the tokens that
    `text` adds."""
    label: Literal[0, 1]
    """Not used."""


# Instead of `examples`: absolute path of an extraction's folder on the Lab's machine. Texts are held out by a
# hash of their content.
_SaeSubmissionFrom = TypedDict("_SaeSubmissionFrom", {"from": str}, total=False)


class _SaeSubmissionRequired(TypedDict):
    operation: Literal["sae"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""


class SaeSubmission(_SaeSubmissionFrom, _SaeSubmissionRequired, total=False):
    """Train a small sparse autoencoder on block outputs, or a transcoder."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    max_tokens: int
    """Greedy continuation budget of comparisons; the other operations generate nothing."""
    seed: int
    """Experiment seed."""
    examples: list[SaeExample]
    """At least 4 per split, and no text in both splits."""
    point: BlockPoint
    """Point of each block to read: its output (block_out, default), its attention or MLP output (attn_out,
    ffn_out), the stream before these (block_in, mid), or the MLP's input (ffn_in). Models without this point
    are refused. With `from`, the extraction determines it."""
    target: Literal["ffn_out"]
    """Train a transcoder that predicts this point. Requires point ffn_in."""
    skip: bool
    """With `target`: also train a linear map."""
    architecture: Literal["relu", "topk", "batchtopk", "jumprelu"]
    """relu (the default) with an L1 penalty; topk keeps the k most active features per activation; batchtopk
    does so per batch, and uses a threshold after training; jumprelu learns a threshold for each feature."""
    rows: Literal["last", "mean", "response", "all"]
    """Of each example the last token's activation (last, the default), the mean over its tokens, without a
    BOS token (mean), or the mean over the tokens of its text after its prompt (response), or every token's
    (all). With `from`, the extraction determines it."""
    first_position: int
    """First token to train on: an index in each text, with every token's rows. BOS tokens are always left
    out. Many models without BOS use a text's first token as an attention sink, with very large
    activations."""
    k: int
    """For topk and batchtopk: active features per activation."""
    batch: int
    """Activations per optimizer step."""
    learning_rate: float
    """Adam's learning rate after warm-up."""
    warmup: float
    """Share of the steps in which the learning rate rises from 0."""
    decay: float
    """Share of the steps in which it falls to 0 at the end."""
    sparsity: float
    """For relu and jumprelu: weight of the penalty, on the L1 norm or on the number of active features per
    activation."""
    features: int
    """Number of features."""
    steps: int
    """Optimizer steps."""


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
    """Activations per step."""
    train_rows: int
    held_out_rows: int
    evaluated_rows: int
    """Held-out activations used for evaluation."""
    learning_rate: float
    sparsity: float
    evaluations: list[SaeEvaluation]
    """Held-out evaluations during training."""
    densities: list[SaeDensity]
    """Features by the share of held-out activations on which they fire: each bin counts from its `least` to
    the next bin's."""


class SaeTraining(_SaeTrainingRequired, total=False):
    """Details of training in batches; losses are those of the batches."""

    k: int
    evaluated_train_rows: int
    """Training activations over which train_mse is the mean: all, or the first in shuffled order."""


class _SaeReportRequired(TypedDict):
    layer: int
    architecture: Literal["relu", "topk", "batchtopk", "jumprelu"]
    held_out_mse: float
    train_mse: float
    """Error of the trained dictionary on its training data; for training in batches, over
    training.evaluated_train_rows activations."""
    explained_variance: float | None
    """On held-out examples; None, with a note, if these do not vary."""
    mean_active: float
    """Mean number of active features per held-out example."""
    dead_features: int
    """Number of features that are active on no held-out example."""
    dead_fraction: float
    losses: list[Loss]
    features: list[Feature]
    """The 16 most active on held-out data. Activations match the weight files, whose decoder rows have norm
    1."""


class SaeReport(_SaeReportRequired, total=False):
    excluded: Excluded
    """Activations excluded from means or from training."""
    training: SaeTraining
    note: str
    """Why a value is None."""


class _SaeResultRequired(TypedDict):
    reports: list[SaeReport]
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class SaeResult(_SaeResultRequired, total=False):
    point: BlockPoint
    """Point of each block that was read; if absent, its output."""
    target: Literal["ffn_out"]
    """Second point of each block that was read, the target of a transcoder."""
    rows: Literal["last", "mean", "response", "all"]
    """Which activation of each text was read; if absent, the last token's."""


class _FeaturesSubmissionRequired(TypedDict):
    operation: Literal["features"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""
    dictionary: str


class FeaturesSubmission(_FeaturesSubmissionRequired, total=False):
    """Encode texts with a saved sparse dictionary, and measure how well it fits them."""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    prompt: str
    """Raw text; no chat template is applied."""
    texts: list[str]
    """Texts to read, instead of the single `prompt`."""
    top: int
    """Number of features listed per token; the artifact contains all active features."""
    pages: list[int]
    """Features to show a dashboard for: where they are active, which tokens' logits their decoder rows raise
    and lower, and their nearest features."""
    labels: str
    """With `pages`: source of feature labels. Either the absolute path of a Neuronpedia export on the Lab's
    machine, or a web address to which the Lab appends each feature's index and then requests it."""


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
    """The strongest features of each token, in descending order."""


class StrongestFeature(TypedDict):
    feature: int
    max: float
    mean: float
    """Mean over the tokens on which it is active."""
    frequency: float
    """Share of tokens on which it is active."""
    text: int
    """Where it is strongest: index in `texts`"""
    token: int
    """and token index."""


class ActivationBin(TypedDict):
    least: float
    tokens: int


# Index of the first token of the excerpt.
_FeaturePageExampleFrom = TypedDict("_FeaturePageExampleFrom", {"from": int})


class FeaturePageExample(_FeaturePageExampleFrom):
    text: int
    """Index in texts,"""
    token: int
    """and token index."""
    activation: float
    activations: list[float]
    """Activations of the excerpt's tokens."""


class FeatureExampleGroup(TypedDict):
    name: Literal["top", "75-100 %", "50-75 %", "25-50 %", "0-25 %"]
    """The strongest activations, or a sample from one quarter of all activations by rank."""
    examples: list[FeaturePageExample]


class NamedToken(TypedDict):
    token_id: int
    token: str
    effect: float
    """Its logit minus the mean logit."""


class _FeatureNeighbourRequired(TypedDict):
    feature: int
    cosine: float


class FeatureNeighbour(_FeatureNeighbourRequired, total=False):
    label: str
    """Label from the requested source."""


class _FeaturePageRequired(TypedDict):
    feature: int
    active_tokens: int
    """Number of tokens in these texts on which it is active."""
    histogram: list[ActivationBin]
    """Those tokens by activation: each bin counts from its `least` to the next bin's."""
    groups: list[FeatureExampleGroup]
    raised: list[NamedToken] | None
    """Tokens that the feature's decoder row alone makes more probable; None without a logit lens."""
    lowered: list[NamedToken] | None
    """Tokens that the feature's decoder row alone makes less probable; None without a logit lens."""
    neighbours: list[FeatureNeighbour]
    """The features with the most similar decoder rows, by cosine."""


class FeaturePage(_FeaturePageRequired, total=False):
    label: str
    """Label from the requested source."""


class CrossEntropy(TypedDict):
    clean: float
    reconstructed: float
    ablated: float


class _FidelityRequired(TypedDict):
    tokens: int
    """Number of tokens, without BOS tokens."""
    l0: float
    """Mean number of active features per token."""
    explained_variance: float | None
    """1 - sum |x - y|^2 / sum |x - mean x|^2 over these tokens, with y the reconstruction; None if they do
    not vary."""
    cosine: float
    """Mean cosine similarity between the reconstructed activation and its reconstruction."""
    cross_entropy: CrossEntropy | None
    """Loss on the texts' next tokens in nats per token: unmodified, with every such activation (a
    transcoder's: every MLP output) replaced by its reconstruction, and with it replaced by zero. None if
    there is no next token."""
    loss_recovered: float | None
    """(ablated - reconstructed) / (ablated - clean); None if these two hardly differ."""


class Fidelity(_FidelityRequired, total=False):
    """How well the dictionary fits these texts."""

    excluded: Excluded


class _FeaturesResultRequired(TypedDict):
    dictionary: ReadDictionary
    layer: int
    texts: list[FeatureText]
    features: list[StrongestFeature]
    """The features with the largest activations anywhere, in descending order."""
    fidelity: Fidelity
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class FeaturesResult(_FeaturesResultRequired, total=False):
    point: BlockPoint
    """Point of each block that was read; if absent, its output."""
    writes: BlockPoint
    """For a transcoder: the point whose activations it predicts and, for the loss, replaces."""
    pages: list[FeaturePage]
    """Dashboards of the requested features."""


class _ExtractExampleRequired(TypedDict):
    text: str
    """Raw text."""


class ExtractExample(_ExtractExampleRequired, total=False):
    prompt: str
    """For rows `response`: raw text that `text` directly follows; activations are read over the tokens that
    `text` adds."""
    label: Literal[0, 1]
    """Copied to index.parquet."""
    split: Split
    """Whether the example is for training or held out."""


class _ExtractSubmissionRequired(TypedDict):
    operation: Literal["extract"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""


class ExtractSubmission(_ExtractSubmissionRequired, total=False):
    """Write the block outputs of a data set to .safetensors files."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    examples: list[ExtractExample]
    data: str
    """Instead of `examples`: absolute path on the Lab's machine, or a URL (s3, gs, https or http), of a .txt
    file with one text per line, of a .jsonl file whose entries are texts or objects with `text` and,
    optionally, `prompt`, or of a .csv file, a .parquet file or a folder of Hugging Face `datasets`
    (save_to_disk) with columns of these names. URLs and the last three require Python with
    tapline-lab[remote]."""
    point: BlockPoint
    """Point of each block to read: its output (block_out, default), its attention or MLP output (attn_out,
    ffn_out), the stream before these (block_in, mid), or the MLP's input (ffn_in). Models without this point
    are refused."""
    target: Literal["ffn_out"]
    """Also write this point, for transcoders. Requires point ffn_in."""
    rows: Literal["all", "last", "mean", "response"]
    """Activations to write per text: every token's (all), the last token's, their mean (mean, without a BOS
    token), or the mean over a response after its prompt (response), which requires both in each entry of a
    data file."""
    dtype: Literal["f32", "f16", "bf16"]
    """Number format of the files."""
    too_long: Literal["refuse", "cut"]
    """Handling of texts longer than max_input_tokens: refuse fails the job, cut truncates them. The result
    counts cut texts."""
    shard: list[int]
    """[i, n]: process only the texts whose index modulo n is i, to split the work between n machines."""
    shard_tokens: int
    """Tokens per file: the most work that can be lost if the machine fails."""
    out: str
    """Absolute path of a folder on the Lab's machine for the files, created if its parent exists, or a URL
    (s3 or gs), where each file is uploaded once it is complete. If it contains finished files of the same
    extraction, the job resumes after them. Default: the files become artifacts."""
    plan: bool
    """Only count texts, tokens and bytes, without computing or writing anything."""


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
    """Folder of the files on the Lab's machine; None if they are artifacts."""
    index: str | None
    """Name of the index file; None for a plan."""
    data: ExtractedData
    layers: list[int]
    hidden: int
    """Values per activation."""
    rows: Literal["all", "last", "mean", "response"]
    dtype: Literal["f32", "f16", "bf16"]
    shard: list[int]
    """[i, n]: the processed part of the texts."""
    texts: int
    cut_texts: int
    """Number of truncated texts."""
    tokens: int
    row_count: int
    """Activations per layer."""
    bytes: int
    """Total size of all files."""
    files: int
    """Number of files with activations."""
    kept_files: int
    """Number of these files that already existed."""
    tokens_per_second: float | None
    """Speed of this job, including writing to disk; None if it wrote no files."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class ExtractResult(_ExtractResultRequired, total=False):
    point: BlockPoint
    """Point of each block that was read; if absent, its output."""
    target: Literal["ffn_out"]
    """Second point of each block that was read, the target of a transcoder."""
    excluded: list[ExtractResultExcluded]
    """For means: activations that the means in this job's files exclude."""


class _DriftExampleRequired(TypedDict):
    text: str
    """Raw text."""


class DriftExample(_DriftExampleRequired, total=False):
    label: Literal[0, 1]
    """Class; required with a probe or a vector."""
    split: Split
    """Whether the example is for training or held out."""


class _DriftSubmissionRequired(TypedDict):
    operation: Literal["drift"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""
    other: str
    """The model to compare with `model`, in any form that `model` accepts. Both must have the same
    architecture and shape."""
    examples: list[DriftExample]


class DriftSubmission(_DriftSubmissionRequired, total=False):
    """Measure what changes between two models of the same architecture, such as a model and its quantised
    version."""

    revision: str
    """Pins a hub revision."""
    layers: list[int]
    """Zero-based block indices; each must exist in the model."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    other_revision: str
    """Pins a hub revision of `other`."""
    dictionary: str
    """Name of a saved dictionary: compare its active features and loss recovered in each model."""
    probe: str
    """Name of a saved probe: compare how well it separates the examples' labels in each model."""
    vector: str
    """Name of a saved vector: compare how well its projections separate the labels in each model."""


class DriftModel(TypedDict):
    name: str
    quantization: str
    bytes: int


class Measured(TypedDict):
    """A value with its 95 % bootstrap interval (resampling the examples)."""

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
    """Mean number of active features per token, in the first and the second model."""
    loss_recovered: list[Measured] | None
    """Share of the loss recovered, in the first and the second model."""
    loss_recovered_difference: Measured | None


class DriftDictionary(_DriftDictionaryRequired, total=False):
    """jaccard: features active in both models divided by features active in either, summed over tokens. None
    if no feature is active, or if the loss does not depend on the block."""

    point: BlockPoint
    """Point of each block that was read; if absent, its output."""


class DriftProbe(TypedDict):
    name: str
    sha256: str
    layer: int
    auroc: list[Measured]
    """AUROC of its scores at the last tokens, in the first and the second model."""
    difference: Measured


class DriftVector(TypedDict):
    """Measured at the first of `layers` that the vector covers."""

    name: str
    sha256: str
    layer: int
    separation: list[Measured]
    """AUROC of the last tokens' projections, in the first and the second model."""
    difference: Measured


class _DriftResultRequired(TypedDict):
    models: list[DriftModel]
    """The models, in the first and the second model."""
    texts: int
    tokens: int
    """Number of tokens, without BOS tokens."""
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
    """The prompt whose answer is traced (raw text)."""
    corrupted: str
    """A counterpart with a different answer (raw text), and the same number of tokens unless spans are
    marked."""


class PromptPair(_PromptPairRequired, total=False):
    target_token: str
    """Text that encodes to exactly one token, without special tokens. Default: the top token of the clean
    run."""
    foil_token: str
    """Text that encodes to exactly one token, without special tokens. Default: the top token of the corrupted
    run."""


class _PatchSweepSubmissionRequired(TypedDict):
    operation: Literal["patch_sweep"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""


class PatchSweepSubmission(_PatchSweepSubmissionRequired, total=False):
    """Activation patching: patch single block outputs, attention or MLP outputs or heads of one prompt into a
    run on another, for each layer and token, to locate where the answer is computed."""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    clean: str
    """The prompt whose answer is traced (raw text)."""
    corrupted: str
    """A counterpart with a different answer (raw text), and the same number of tokens unless spans are
    marked."""
    pairs: list[PromptPair]
    """Prompt pairs, instead of `clean` and `corrupted`. Results are means over the pairs, with confidence
    intervals."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens. Default: the top token of the clean
    run."""
    foil_token: str
    """Text that encodes to exactly one token, without special tokens. Default: the top token of the corrupted
    run."""
    layers: list[int]
    """Zero-based block indices, any number of them. Default: all blocks."""
    points: list[ChangedPoint]
    """Hook points to patch in each layer: block_out, its output; attn_out and ffn_out, what its attention and
    MLP add to the residual stream; block_in and mid, the residual stream before each; ffn_in, what the MLP
    reads; head_out, the output of each head, one head at a time. Models without one of these points are
    rejected."""
    heads: list[int]
    """For head_out: the heads to patch, one at a time. Default: all heads."""
    positions: Literal["aligned"] | list[int]
    """Token indices; negative indices count from the end, and -1 is the last token. Default: every token.
    Pairs of different lengths need negative indices. Or aligned: both texts of every pair mark the same
    number of spans with [[ and ]], at most 64, and each span's last-token activation is patched into the
    matching span. The marks are removed, and the texts may differ in length."""
    direction: Literal["denoise", "noise"]
    """denoise patches activations of the clean run into the corrupted run (which are sufficient for the
    answer?); noise patches activations of the corrupted run into the clean run (which are necessary?)."""
    controls: bool
    """Also apply a norm-matched random change at each site, drawn from `seed`."""


class PatchedSpan(TypedDict):
    text: str
    position: int
    """Index of its last token, where the patch is applied."""


class _PatchedPromptRequired(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    logit_difference: float
    """Logit difference: the target's logit minus the foil's."""


class PatchedPrompt(_PatchedPromptRequired, total=False):
    spans: list[PatchedSpan]
    """The marked spans."""


class PatchPair(TypedDict):
    clean: PatchedPrompt
    corrupted: PatchedPrompt
    restored: float
    """Logit difference of the patched run with one of its own activations patched back: the effect of
    batching alone."""
    target_token: str
    target_token_id: int
    foil_token: str
    foil_token_id: int


class Bounds(TypedDict):
    low: float
    high: float


class PatchControl(TypedDict):
    """The same with a norm-matched random change."""

    logit_difference: float
    """Logit difference: the target's logit minus the foil's."""
    change: float
    """Its change relative to the patched run without a patch."""
    recovery: float | None
    """The change as a share of the difference between the two runs: 0 is the unpatched run, 1 the run that
    the activations come from. None if the runs differ by less than 1e-6."""


class _PatchSiteRequired(TypedDict):
    layer: int
    position: int
    """As in `positions`."""
    logit_difference: float
    """Logit difference: the target's logit minus the foil's."""
    change: float
    """Its change relative to the patched run without a patch."""
    recovery: float | None
    """The change as a share of the difference between the two runs: 0 is the unpatched run, 1 the run that
    the activations come from. None if the runs differ by less than 1e-6."""
    change_length: float | None
    """L2 norm of the change to the activation; None if nothing reads the activation."""
    row_length: float | None
    """L2 norm of the activation before the change."""


class PatchSite(_PatchSiteRequired, total=False):
    """One hook point of one block, or one of its heads, at one token; means over the pairs."""

    point: ChangedPoint
    head: int
    """For head_out: the patched head."""
    change_interval: Bounds
    """95 % bootstrap interval over the pairs, if there are two or more."""
    recovery_interval: Bounds
    """The same for the recovery."""
    control: PatchControl


class _PatchSweepResultRequired(TypedDict):
    direction: Literal["denoise", "noise"]
    layers: list[int]
    positions: list[int]
    """As requested: token indices, negative indices counting from the end. For marked texts: the numbers of
    the spans, from 0."""
    pairs: list[PatchPair]
    clean: float
    """Mean logit difference of the clean runs."""
    corrupted: float
    """Mean logit difference of the corrupted runs."""
    restored: float
    """Mean logit difference of the patched runs with one of their own activations patched back."""
    sites: list[PatchSite]
    """In the order of `layers`, `points` and `positions`; for head_out, also head by head."""
    computed_sites: int
    """Sites and controls that were computed. The rest cannot change anything: nothing reads the activation,
    or both runs are identical there."""
    computed_tokens: int
    """Tokens computed for these sites."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class PatchSweepResult(_PatchSweepResultRequired, total=False):
    points: list[ChangedPoint]
    heads: list[int]
    """For head_out: the heads, each of which is a separate site."""
    control_seed: int
    """Seed of the random changes."""


class _ExplainSubmissionRequired(TypedDict):
    operation: Literal["explain"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""
    prompt: str
    """Raw text; no chat template is applied."""
    layer: int
    """Zero-based index of the block whose output is described."""
    template: str
    """The verbaliser's prompt, containing the marker once. Control tokens are parsed, so it can be written in
    the verbaliser's chat format; no chat template is applied."""
    marker: str
    """Text that is exactly one token of the verbaliser, also within the template. The activation replaces
    that token's embedding."""


class ExplainSubmission(_ExplainSubmissionRequired, total=False):
    """Describe block outputs in words: each replaces a token embedding in the prompt of a verbaliser
    model."""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    positions: list[int]
    """Token indices of the prompt; negative indices count from the end. Each activation is described
    separately."""
    verbaliser: str
    """The model that writes the descriptions, in any form that `model` accepts, with the same hidden size.
    Default: `model` itself."""
    verbaliser_revision: str
    """Pins a hub revision of `verbaliser`."""
    length: float
    """L2 norm to which each activation is scaled, usually the norm that the verbaliser was trained on.
    Default: unscaled."""
    samples: int
    """Descriptions per activation; more than one requires a temperature above 0."""
    temperature: float
    """Sampling temperature, with randomness from `seed`; 0 is greedy decoding."""
    description_tokens: int
    """Maximum length of a description, in tokens."""
    controls: bool
    """Also run two controls: each activation with its values shuffled by `seed`, and no activation at all."""


class Verbaliser(TypedDict):
    name: str
    quantization: str
    bytes: int
    prompt_tokens: int
    """Tokens of the template, including the marker."""
    token_scale: float
    """Factor that the model applies to token embeddings but not to an inserted activation; 1 for most
    models."""


class Description(TypedDict):
    """One description by the verbaliser."""

    text: str
    tokens: int
    ended: bool
    """Whether the verbaliser ended the description itself; otherwise it was cut off."""


class _ExplainedRowRequired(TypedDict):
    position: int
    """Zero-based token index."""
    token: str
    token_id: int
    norm: float
    """L2 norm of the block output."""
    descriptions: list[Description]
    """One per sample."""


class ExplainedRow(_ExplainedRowRequired, total=False):
    """One activation of the block output, and the verbaliser's descriptions of it."""

    shuffled: list[Description]
    """Control: descriptions of the activation with its values shuffled by `seed`."""


class _ExplainResultRequired(TypedDict):
    layer: int
    verbaliser: Verbaliser
    length: float | None
    """L2 norm to which every activation was scaled; None if unscaled."""
    explained: list[ExplainedRow]
    """In the order of `positions`."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class ExplainResult(_ExplainResultRequired, total=False):
    unfilled: list[Description]
    """Control: descriptions without an activation; the marker keeps its own embedding."""


class _GraphSubmissionRequired(TypedDict):
    operation: Literal["graph"]
    model: str
    """A .gguf file, a directory with one model, a hub id, or `demo`, the embedded model."""
    prompt: str
    """Raw text; no chat template is applied."""


class GraphSubmission(_GraphSubmissionRequired, total=False):
    """An attribution graph of neurons and attention heads (RelP), or of transcoder features: what each adds
    to the next tokens' logits and to each other, with attention weights and norms frozen."""

    revision: str
    """Pins a hub revision."""
    max_input_tokens: int
    """Maximum input tokens per text. A longer text fails the job; nothing is truncated."""
    seed: int
    """Experiment seed."""
    position: int
    """Token index after which the logits are explained; negative indices count from the end, and -1 is the
    last token. Later tokens are not computed."""
    target_token: str
    """Text that encodes to exactly one token, without special tokens. Default: the most probable tokens,
    until they have 0.95 of the probability, at most 10."""
    foil_token: str
    """With `target_token`: a token whose logit is subtracted. Default: the mean of all logits is
    subtracted."""
    transcoders: str
    """Name of a set of saved transcoders (NAME-0, NAME-1, … of blocks 0, 1, …), or of a single one. The nodes
    are then their features; blocks without a transcoder have error nodes only."""
    zero_positions: int
    """With `transcoders`: number of first tokens at which MLP outputs are constants, without features and
    errors. Default: as the set states, otherwise 1 if the prompt starts with a BOS token."""
    nodes: int
    """The most neurons and attention heads, or features, each at one token, before pruning."""
    first_token: bool
    """Also allow nodes at the first token. By default its neurons are summed up as rest: most models use the
    first token as an attention sink, with very large activations that are much the same in every text."""
    node_threshold: float
    """Pruning keeps the nodes that have this share of the influence on the logits."""
    edge_threshold: float
    """Of the edges between them, pruning keeps those that have this share of the influence."""
    measured: int
    """The number of nodes, the strongest for the first target, that are also removed one at a time in the
    unfrozen model."""


class _GraphTranscoderRequired(TypedDict):
    layer: int
    dictionary: str
    """Name of the saved dictionary, for `feature` of an intervention."""
    sha256: str
    """Hash of its weights."""
    point: str
    """Point that it reads."""
    writes: str
    """Point at which its features are directions."""
    features: int
    active: int
    """Active features at all tokens that count."""


class GraphTranscoder(_GraphTranscoderRequired, total=False):
    writes_blocks: int
    """For a cross-layer transcoder: number of blocks that its features write into, from this one on. Such
    features cannot be clamped."""


class GraphResultTranscoders(TypedDict):
    name: str
    zero_positions: int
    """First tokens without features and errors."""
    blocks: list[GraphTranscoder]
    """The blocks that have a transcoder, upwards."""


class GraphFeatureStrongest(TypedDict):
    position: int
    activation: float


class GraphFeature(TypedDict):
    layer: int
    index: int
    active_tokens: int
    """Number of the prompt's tokens at which it is active."""
    strongest: list[GraphFeatureStrongest]
    """The tokens at which it is most active, at most 3."""
    raised: list[NamedToken] | None
    """The 5 tokens that its decoder row alone makes most probable, through the final norm and the output
    head; a cross-layer feature's rows are summed over blocks. None without a logit lens."""


class GraphTargetPartsDirect(TypedDict):
    embeddings: float
    """Directly from token embeddings, through the residual stream and frozen attention."""
    neurons: float
    heads: float
    features: float
    rest: float
    """From neurons, or active features, that are not nodes."""
    errors: float
    """From MLP outputs that no transcoder predicts; 0 without transcoders."""
    rounding: float
    """From the rounding of the file's products, which the linear paths lack."""
    constant: float
    """From biases."""


class GraphTargetPartsThrough(TypedDict):
    embeddings: float
    """Directly from token embeddings, through the residual stream and frozen attention."""
    rest: float
    """From neurons, or active features, that are not nodes."""
    errors: float
    """From MLP outputs that no transcoder predicts; 0 without transcoders."""
    rounding: float
    """From the rounding of the file's products, which the linear paths lack."""
    constant: float
    """From biases."""


class GraphTargetParts(TypedDict):
    token_id: int
    token: str
    probability: float
    foil_token_id: float | None
    """None: the mean of all logits is subtracted."""
    foil_token: str | None
    weight: float
    """Of its influence: its probability, or 1 for a single target."""
    value: float
    """The logit minus the foil's or the mean, before a soft cap, from the last block's output."""
    measured: float
    """The same from the pass's logits: after a soft cap, and with the rounding of the head."""
    direct: GraphTargetPartsDirect
    """The parts of the value that come directly from each kind of node."""
    through: GraphTargetPartsThrough
    """The parts of the value through all paths, including neurons or features: only where they start. Without
    transcoders, rest is 0, because paths through other neurons are also followed."""


class GraphNode(TypedDict):
    kind: Literal["embedding", "neuron", "head", "feature", "rest", "error", "rounding", "target"]
    """neuron: after the gate; head: an attention head's output at the token that reads; feature: of the
    block's transcoder; rest: the neurons or active features of a block at a token that are not nodes; error:
    what the block's MLP writes at a token and its transcoder does not predict; rounding: what the pass
    computed there and the linear paths do not."""
    layer: float | None
    """None for embeddings and targets."""
    position: int
    """Zero-based token index."""
    index: float | None
    """Of the neuron, head, feature (in its dictionary) or target; otherwise None."""
    value: float | None
    """A neuron's or feature's activation; a head's output in the direction in which it affects the targets; a
    target's value; otherwise None."""
    influence: float
    """Share of the influence on the logits, directly and through other nodes."""


class GraphEdge(TypedDict):
    source: int
    """Index in `nodes`."""
    target: int
    """Index in `nodes`."""
    value: float
    """What the source adds to the target's value."""
    influence: float
    """Share of the influence of all edges after pruning."""


class _GraphResultSizeRequired(TypedDict):
    found: int
    """Neurons and heads, or features, before pruning."""
    kept: int
    """The same after it."""
    edges: int
    """Edges after pruning, including those not listed."""


class GraphResultSize(_GraphResultSizeRequired, total=False):
    active: int
    """With transcoders: active features, of which nodes are chosen."""


class _GraphResultScoresRequired(TypedDict):
    replacement: float
    """Share of the influence that starts at token embeddings; the remainder starts at errors, at neurons or
    features that are not nodes, or at rounding."""
    completeness: float
    """Share of the edges of influential nodes, weighted by influence, that do not come from errors, from
    neurons or features that are not nodes, or from rounding."""
    rounding: float
    """Share of the influence that starts at rounding."""


class GraphResultScores(_GraphResultScoresRequired, total=False):
    errors: float
    """With transcoders: share of the influence that starts at errors."""
    rest: float
    """With transcoders: share of the influence that starts at features that are not nodes."""


class _GraphResultClosingRequired(TypedDict):
    worst: float
    """The greatest difference of a node's value from the sum of its edges and its constant, over the L2 norm
    of these."""
    bound: float
    """Above this the job fails."""
    attention: float
    """The greatest difference of a block's attention from its linear path, relative L2."""
    mlp: float
    """The same of the MLPs; 0 with transcoders, which replace them."""


class GraphResultClosing(_GraphResultClosingRequired, total=False):
    frozen: float
    """With transcoders: the greatest difference between the edges of a measured feature and what its removal
    changes in the frozen model, over its largest edge."""


class _MeasuredNodeRequired(TypedDict):
    kind: Literal["neuron", "head", "feature"]
    layer: int
    position: int
    index: int
    estimate: float
    """What comes through it with everything frozen."""
    effect: float
    """What the first target loses when it is removed and nothing is frozen."""


class MeasuredNode(_MeasuredNodeRequired, total=False):
    direct: float
    """Of a feature: its edge to the first target."""
    frozen: float
    """Of a feature: what the first target loses when it is removed with attention, norms and all other MLP
    outputs frozen, computed upwards from the change. Equals `direct`."""


class GraphResultMeasuredInterval(TypedDict):
    low: float
    high: float


class GraphResultMeasured(TypedDict):
    nodes: list[MeasuredNode]
    """The strongest first."""
    baseline: float
    """The first target without removals."""
    correlation: float | None
    """Pearson's, of estimates and effects; None for fewer than three nodes."""
    interval: GraphResultMeasuredInterval | None
    """95 % bootstrap interval over these nodes."""


class _GraphResultRequired(TypedDict):
    tokens: list[str]
    """Of the prompt, up to `position`."""
    token_ids: list[int]
    position: int
    blocks: int
    """Number of the model's blocks."""
    targets: list[GraphTargetParts]
    """The most probable first."""
    nodes: list[GraphNode]
    """After pruning, upwards; then the targets."""
    edges: list[GraphEdge]
    """The most influential edges after pruning, at most 4000, strongest first. graph.npz has all."""
    size: GraphResultSize
    """Of the graph."""
    scores: GraphResultScores
    """Of the graph before pruning."""
    closing: GraphResultClosing
    """How exactly the sums hold."""
    measured: GraphResultMeasured | None
    """None if nothing was measured."""
    memory_bytes: int
    """Estimate of the memory needed in addition to the model."""
    note: str
    artifacts: list[str]
    """Names for `GET .../artifacts/{name}`."""
    provenance: Provenance


class GraphResult(_GraphResultRequired, total=False):
    model_fingerprint: str
    """Fingerprint of the model's file, as in the capabilities of a serving model."""
    transcoders: GraphResultTranscoders
    """Absent without transcoders."""
    features: list[GraphFeature]
    """With transcoders: the features in `nodes`, the most influential first, at most 100."""


class CapabilitiesForward(TypedDict):
    sequences: Literal[64]
    sequence_tokens: int
    """Of one sequence."""
    bytes: Literal[2000000000]
    """Of one result."""


class _CapabilitiesRequired(TypedDict):
    serving_activations: bool
    """Whether the resident model supports captures."""
    model: str | None
    max_layers: int
    max_input_tokens: int
    n_layer: int | None
    n_embd: int | None
    architecture: str | None
    backend: str
    points: list[ModelPoint]
    """Points of the model's blocks that Lab experiments can read; captures here read block_out. `attention`
    needs a context without flash attention, which the Lab uses."""
    pending: bool
    """Whether a capture is queued or running."""


class Capabilities(_CapabilitiesRequired, total=False):
    fingerprint: str
    """Fingerprint of the model's file; saved vectors and probes record the one they were made on."""
    chat_template: bool
    """Whether the model has a chat template. Without one, chat completions continue the messages' raw
    texts."""
    forward: CapabilitiesForward
    """Limits of POST /lab/forward."""


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
    """Methods of `Lab` for each operation."""

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
        self, operation: Literal["graph"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[GraphResult]: ...
    @overload
    def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]: ...
    def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]:
        """Submits an experiment. It is accepted, not finished: use wait().

        `model` is "demo", a hub id or the path of a model; a `Path` is made absolute, because the service
        has a different working directory. `settings` are the fields of a submission, which the service
        validates: layers, max_input_tokens, max_tokens, seed, revision and those of the operation. Ranges and
        NumPy arrays and numbers are accepted as lists and numbers; fields that are None are ignored.
        """
        return self._submit(operation, model, settings)

    def _submit(
        self, operation: str, model: str | os.PathLike[str], settings: dict[str, Any]
    ) -> Job[Any]:
        raise NotImplementedError


class AsyncSubmitting:
    """Methods of `AsyncLab` for each operation."""

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
        self, operation: Literal["graph"], model: str | os.PathLike[str], **settings: Any
    ) -> Job[GraphResult]: ...
    @overload
    async def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]: ...
    async def submit(
        self, operation: str, model: str | os.PathLike[str], **settings: Any
    ) -> Job[Any]:
        """Submits an experiment, like Lab.submit()."""
        return await self._submit(operation, model, settings)

    async def _submit(
        self, operation: str, model: str | os.PathLike[str], settings: dict[str, Any]
    ) -> Job[Any]:
        raise NotImplementedError
