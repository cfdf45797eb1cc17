"""The services' answers, for type checkers: each is a plain dictionary."""

from __future__ import annotations

from typing import Literal, TypedDict

Operation = Literal["inspect", "compare", "probe", "sae", "features", "extract", "drift", "patch_sweep", "explain"]
Status = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
Split = Literal["train", "test"]
BlockPoint = Literal["block_in", "attn_out", "mid", "ffn_out", "block_out"]
ChangedPoint = Literal["block_in", "head_out", "attn_out", "mid", "ffn_out", "block_out"]
ModelPoint = Literal[
    "block_in", "attention", "head_out", "attn_out", "mid", "router", "ffn_out", "block_out"
]


class PatchGrowth(TypedDict):
    """What of a patch sweep is known while it runs; told of a single job, not in lists."""

    pair: int
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
    done: float
    total: float
    """0 where the extent is not known."""


class Progress(_ProgressRequired, total=False):
    growth: PatchGrowth
    """0 where the extent is not known."""


class Health(TypedDict):
    status: Literal["ok"]
    api_version: Literal[1]
    version: str
    operations: list[Operation]
    points: list[ModelPoint]
    """Points of a block that experiments know; which a model has, its own list says."""
    limits: dict[str, float]
    active_job: str | None
    queued: int
    queue_capacity: int
    backend: str


class _SummaryRequired(TypedDict):
    id: str
    created: float
    """Unix seconds."""
    started: float | None
    ended: float | None
    status: Status
    operation: Operation
    model: str
    progress: Progress


class JobSummary(_SummaryRequired, total=False):
    error: str


class ResolvedModel(TypedDict):
    path: str
    repository: str | None
    commit: str | None


class WeightFile(TypedDict):
    name: str
    bytes: int
    modified_ns: str


class Provenance(TypedDict):
    config_sha256: str
    seed: int
    hook: Literal["block output"]
    input_mode: Literal["raw text"]
    layers: list[int]
    versions: dict[str, str]
    requested_model: str
    requested_revision: str | None
    resolved_model: ResolvedModel
    architecture: str
    quantization: str
    n_layer: int
    n_embd: int
    weights: list[WeightFile]
    seconds: dict[str, float]
    device: str


class Candidate(TypedDict):
    token_id: int
    token: str
    probability: float


class Standing(TypedDict):
    """Where a token stands in a prediction over the whole vocabulary."""

    probability: float
    rank: int
    """1 is the most probable token."""


class _TranslatedReadingRequired(TypedDict):
    predictions: list[list[Candidate]]
    """The top 3 candidates, one list a token."""


class TranslatedReading(_TranslatedReadingRequired, total=False):
    """What the named lens reads of a block's output."""

    target: list[Standing]
    entropies: list[float]
    """Of what is read at each token, in nats."""
    divergences: list[float]
    """KL of the model's output from it at each token, in nats."""


class InspectLens(TypedDict):
    """The stored lens that was used."""

    name: str
    kind: str
    sha256: str


class _InspectLayerRequired(TypedDict):
    layer: int
    norms: list[float]
    """L2 norm of the block output, one a token."""


class InspectLayer(_InspectLayerRequired, total=False):
    predictions: list[list[Candidate]]
    """Logit lens: the top 3 candidates, one list a token."""
    target: list[Standing]
    """Where the target token stands, one a token; of the model's answer, after the last token alone."""
    entropies: list[float]
    divergences: list[float]
    translated: TranslatedReading
    note: str


class _InspectResultRequired(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    layers: list[InspectLayer]
    next_tokens: list[Candidate]
    note: str
    artifacts: list[str]
    provenance: Provenance


class _InspectPointRequired(TypedDict):
    layer: int
    point: Literal["block_in", "attn_out", "mid", "ffn_out"]
    norms: list[float]
    """L2 norm, one a token."""


class InspectPoint(_InspectPointRequired, total=False):
    """A point inside a block."""

    predictions: list[list[Candidate]]
    target: list[Standing]
    entropies: list[float]
    divergences: list[float]


class Read(TypedDict):
    position: int
    weight: float


class AttentionHead(TypedDict):
    """What a head looks at: shares of its attention in this text."""

    layer: int
    head: int
    previous: float | None
    first: float | None
    own: float
    induction: float | None
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
    """Direct contributions to one logit, with the final norm's scale kept as it is."""

    target_token: str
    target_token_id: int
    logit: float
    """The model's own, after the last token."""
    sum: float
    embedding: float
    constant: float
    """Of the final norm's and the head's biases."""
    blocks: list[BlockContributions]


class InspectResult(_InspectResultRequired, total=False):
    points: list[InspectPoint]
    attention: list[AttentionHead]
    routing: list[Routing]
    decomposition: Decomposition
    lens: InspectLens
    target_token: str
    """The token that the lens follows, where one was asked for."""
    target_token_id: int


class Change(TypedDict):
    """What an intervention did to the block's output."""

    rows: int
    """Tokens whose rows were changed, over all passes."""
    length: float
    """L2 length of the change, the mean of these rows."""
    row_length: float
    """L2 length of the row before it, the mean of these rows."""


class ControlTrial(TypedDict):
    """The same with a random vector of the same length."""

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
    """Jobs of earlier versions have none."""
    control: ControlTrial
    """With `controls=True`."""


class _CompareResultRequired(TypedDict):
    trials: list[Trial]
    intervention: Literal["scale", "ablate", "patch", "steer", "project_out", "clamp", "swap"]
    position: str
    note: str
    artifacts: list[str]
    provenance: Provenance


class SwappedToken(TypedDict):
    token: str
    token_id: int


class CompareResult(_CompareResultRequired, total=False):
    point: ChangedPoint
    """What of the block was changed, where not its output."""
    heads: list[int]
    layers: list[int]
    """Of a swap, all layers that were changed."""
    swapped: list[SwappedToken]
    """Of a swap, the two tokens."""
    lens: InspectLens
    strength_unit: Literal["unit", "vector", "row_norm"]
    vector_length: float
    """L2 length of the donor's state, or of the difference of the texts' states."""
    control_seed: int
    """What the random vector was drawn from."""


class _ProbeExampleRequired(TypedDict):
    text: str
    label: Literal[0, 1]
    split: Split


class ProbeExample(_ProbeExampleRequired, total=False):
    prompt: str
    """For rows "response": what the text follows."""


class ProbeScore(TypedDict):
    text: str
    split: Split
    label: Literal[0, 1]
    score: float


class Interval(TypedDict):
    low: float
    high: float


class Spread(TypedDict):
    low: float
    high: float
    mean: float
    std: float


class ShuffledLabels(TypedDict):
    permutations: int
    accuracy: Spread
    auc: Spread
    p_accuracy: float
    p_auc: float


class _ProbeFigures(TypedDict):
    accuracy: float
    auc: float
    brier: float
    majority_accuracy: float
    shuffled_label_accuracy: float
    train_size: int
    test_size: int


class ProbeRows(_ProbeFigures):
    """A probe's figures of single rows; intervals are over texts, and labels were permuted among texts."""

    accuracy_interval: Interval
    auc_interval: Interval
    shuffled_labels: ShuffledLabels
    shared_rows: int
    """Held-out rows that a training text has, too."""


class Excluded(TypedDict):
    bos: int
    outliers: int


class _ProbeReportRequired(_ProbeFigures):
    layer: int
    converged: bool
    iterations: int
    scores: list[ProbeScore]


class ProbeReport(_ProbeReportRequired, total=False):
    excluded: Excluded
    accuracy_interval: Interval
    auc_interval: Interval
    shuffled_labels: ShuffledLabels
    by_row: ProbeRows
    """For rows "all"; the figures beside it are then of texts, by the mean of their rows' scores."""


class _ProbeResultRequired(TypedDict):
    reports: list[ProbeReport]
    artifacts: list[str]
    provenance: Provenance


class ProbeResult(_ProbeResultRequired, total=False):
    point: BlockPoint
    """What of each block was read, where it is not its output."""
    rows: Literal["last", "mean", "response", "all"]
    """Which row of each text was read, where it is not the last token's."""


class _ExampleText(TypedDict):
    text: str


class _SaeExampleRequired(TypedDict):
    text: str
    split: Split


class SaeExample(_SaeExampleRequired, total=False):
    prompt: str
    """For rows "response": what the text follows."""
    label: Literal[0, 1]


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
    train_rows: int
    held_out_rows: int
    evaluated_rows: int
    learning_rate: float
    sparsity: float
    evaluations: list[SaeEvaluation]
    densities: list[SaeDensity]


class SaeTraining(_SaeTrainingRequired, total=False):
    k: int
    evaluated_train_rows: int


class _SaeReportRequired(TypedDict):
    layer: int
    architecture: Literal["relu", "topk", "batchtopk", "jumprelu"]
    held_out_mse: float
    train_mse: float
    explained_variance: float | None
    mean_active: float
    dead_features: int
    dead_fraction: float
    losses: list[Loss]
    features: list[Feature]


class SaeReport(_SaeReportRequired, total=False):
    excluded: Excluded
    training: SaeTraining
    note: str


class _SaeResultRequired(TypedDict):
    reports: list[SaeReport]
    artifacts: list[str]
    provenance: Provenance


class SaeResult(_SaeResultRequired, total=False):
    point: BlockPoint
    """What of each block was read, where it is not its output."""
    rows: Literal["last", "mean", "response", "all"]
    """Which row of each text was read, where it is not the last token's."""


class FeatureActivation(TypedDict):
    feature: int
    activation: float


class CrossEntropy(TypedDict):
    clean: float
    reconstructed: float
    ablated: float


class _FidelityRequired(TypedDict):
    tokens: int
    l0: float
    explained_variance: float | None
    cosine: float
    cross_entropy: CrossEntropy | None
    loss_recovered: float | None


class Fidelity(_FidelityRequired, total=False):
    excluded: Excluded


class FeatureText(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    top: list[list[FeatureActivation]]


class StrongestFeature(TypedDict):
    feature: int
    max: float
    mean: float
    frequency: float
    text: int
    token: int


class ReadDictionary(TypedDict):
    name: str
    sha256: str
    layout: str
    activation: str
    features: int
    trained_on: str | None


class NamedToken(TypedDict):
    token_id: int
    token: str
    effect: float


# One of its fields is called as a word of Python's is.
FeaturePageExample = TypedDict(
    "FeaturePageExample",
    {"text": int, "token": int, "activation": float, "from": int, "activations": "list[float]"},
)


class FeatureExampleGroup(TypedDict):
    name: Literal["top", "75-100 %", "50-75 %", "25-50 %", "0-25 %"]
    examples: list[FeaturePageExample]


class ActivationBin(TypedDict):
    least: float
    tokens: int


class _FeatureNeighbourRequired(TypedDict):
    feature: int
    cosine: float


class FeatureNeighbour(_FeatureNeighbourRequired, total=False):
    label: str


class _FeaturePageRequired(TypedDict):
    feature: int
    active_tokens: int
    histogram: list[ActivationBin]
    groups: list[FeatureExampleGroup]
    raised: list[NamedToken] | None
    lowered: list[NamedToken] | None
    neighbours: list[FeatureNeighbour]


class FeaturePage(_FeaturePageRequired, total=False):
    label: str


class _FeaturesResultRequired(TypedDict):
    dictionary: ReadDictionary
    layer: int
    texts: list[FeatureText]
    features: list[StrongestFeature]
    fidelity: Fidelity
    note: str
    artifacts: list[str]
    provenance: Provenance


class FeaturesResult(_FeaturesResultRequired, total=False):
    point: BlockPoint
    """What of the block the dictionary reads, where it is not its output."""
    pages: list[FeaturePage]


class ExtractedData(TypedDict):
    name: str
    sha256: str


class _ExtractResultRequired(TypedDict):
    folder: str | None
    """Where the files are, on the service's machine; None where they are artifacts."""
    index: str | None
    """Name of the file that lists the others; None where only a plan was asked for."""
    data: ExtractedData
    layers: list[int]
    hidden: int
    rows: Literal["all", "last", "mean", "response"]
    dtype: Literal["f32", "f16", "bf16"]
    shard: list[int]
    texts: int
    cut_texts: int
    tokens: int
    row_count: int
    """Rows of each layer."""
    bytes: int
    files: int
    kept_files: int
    """Those of them that were there already."""
    tokens_per_second: float | None
    note: str
    artifacts: list[str]
    provenance: Provenance


class ExtractResult(_ExtractResultRequired, total=False):
    point: BlockPoint
    """What of each block was read, where it is not its output."""


class DriftExample(_ExampleText, total=False):
    label: Literal[0, 1]
    """Needed for a probe or a vector."""
    split: Split


class Measured(TypedDict):
    """A figure with its 95 % bootstrap interval over the examples."""

    value: float
    low: float
    high: float


class DriftModel(TypedDict):
    name: str
    quantization: str
    bytes: int


class DriftLayer(TypedDict):
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
    loss_recovered: list[Measured] | None
    loss_recovered_difference: Measured | None


class DriftDictionary(_DriftDictionaryRequired, total=False):
    point: BlockPoint
    """What of the block it reads, where it is not its output."""


class DriftProbe(TypedDict):
    name: str
    sha256: str
    layer: int
    auroc: list[Measured]
    difference: Measured


class DriftVector(TypedDict):
    name: str
    sha256: str
    layer: int
    separation: list[Measured]
    difference: Measured


class _DriftResultRequired(TypedDict):
    models: list[DriftModel]
    texts: int
    tokens: int
    layers: list[DriftLayer]
    note: str
    artifacts: list[str]
    provenance: Provenance


class DriftResult(_DriftResultRequired, total=False):
    dictionary: DriftDictionary
    probe: DriftProbe
    vector: DriftVector


class Bounds(TypedDict):
    low: float
    high: float


class PatchControl(TypedDict):
    logit_difference: float
    change: float
    recovery: float | None


class _PatchSiteRequired(TypedDict):
    layer: int
    position: int
    logit_difference: float
    change: float
    recovery: float | None
    """Share of the way from the run that is patched to the run that the states are from."""
    change_length: float | None
    row_length: float | None


class PatchSite(_PatchSiteRequired, total=False):
    point: ChangedPoint
    head: int
    change_interval: Bounds
    recovery_interval: Bounds
    control: PatchControl


class PatchedSpan(TypedDict):
    text: str
    position: int


class _PatchedPromptRequired(TypedDict):
    tokens: list[str]
    token_ids: list[int]
    logit_difference: float


class PatchedPrompt(_PatchedPromptRequired, total=False):
    spans: list[PatchedSpan]
    """Of marked texts: each span, and the index of its last token."""


class PatchPair(TypedDict):
    clean: PatchedPrompt
    corrupted: PatchedPrompt
    restored: float
    target_token: str
    target_token_id: int
    foil_token: str
    foil_token_id: int


class _PatchSweepRequired(TypedDict):
    direction: Literal["denoise", "noise"]
    layers: list[int]
    positions: list[int]
    pairs: list[PatchPair]
    clean: float
    corrupted: float
    restored: float
    sites: list[PatchSite]
    computed_sites: int
    computed_tokens: int
    note: str
    artifacts: list[str]
    provenance: Provenance


class PatchSweepResult(_PatchSweepRequired, total=False):
    points: list[ChangedPoint]
    heads: list[int]
    control_seed: int


class Description(TypedDict):
    text: str
    tokens: int
    ended: bool
    """By the verbaliser itself; otherwise it was cut."""


class _ExplainedRowRequired(TypedDict):
    position: int
    token: str
    token_id: int
    norm: float
    descriptions: list[Description]
    """One a sample."""


class ExplainedRow(_ExplainedRowRequired, total=False):
    shuffled: list[Description]
    """Of the control: the same numbers in another order."""


class Verbaliser(TypedDict):
    name: str
    quantization: str
    bytes: int
    prompt_tokens: int
    token_scale: float


class _ExplainResultRequired(TypedDict):
    layer: int
    verbaliser: Verbaliser
    length: float | None
    explained: list[ExplainedRow]
    note: str
    artifacts: list[str]
    provenance: Provenance


class ExplainResult(_ExplainResultRequired, total=False):
    unfilled: list[Description]
    """Of the control without a row."""


class _CapabilitiesRequired(TypedDict):
    serving_activations: bool
    model: str | None
    max_layers: int
    max_input_tokens: int
    n_layer: int | None
    n_embd: int | None
    architecture: str | None
    backend: str
    points: list[ModelPoint]
    pending: bool


class Capabilities(_CapabilitiesRequired, total=False):
    fingerprint: str


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
