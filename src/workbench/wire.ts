/** The types that the service and its page exchange. */
import type { JobSummary } from "../contracts/index.js";
import type { LiveIntervention } from "../contracts/live.js";
import type { ModelPoint } from "../contracts/names.js";
import type { Expected, MeasuredStrength, StrengthRange } from "../findings/contrast.js";
import type { Detection } from "../findings/label-finding.js";
import type { GgufHeader } from "../models/gguf-header.js";
import type { UnfinishedDownload } from "../models/hub/cached.js";
import type { HubOffer } from "../models/hub/offers.js";
import type { MemoryVerdict } from "../models/memory.js";

export interface Candidate {
  token_id: number;
  token: string;
  probability: number;
}

/** One generated token, with the measurements at the position that produced it. */
export interface AnswerToken {
  /** Absent if the server only sent text. */
  id?: number;
  text: string;
  thinking?: boolean;
  /** Ends the text and is not part of it. */
  special?: boolean;
  /** Before temperature and other sampling. */
  probability?: number;
  candidates?: Candidate[];
  /** In the order of the turn's layers. */
  norms?: number[];
  lens?: Candidate[][];
  probes?: Record<string, number | null>;
  /** Features of the turn's dictionary, strongest first. */
  features?: FeatureScore[];
}

export interface FeatureScore {
  feature: number;
  activation: number;
}

/** What the server reports about an intervention. */
export interface DoneEdit {
  kind: string;
  layer: number;
  heads?: number[];
  vector?: string;
  rows: number;
  mean_row_length?: number;
  mean_change_length?: number;
  note?: string;
}

export interface TurnAnswer {
  state: "running" | "done" | "stopped" | "failed";
  /** False for the baseline, without interventions. */
  edited: boolean;
  tokens: AnswerToken[];
  finish: string | null;
  /**
   * How long it thought, measured by the workbench: from its first thinking token to its first other token, or to its end.
   * Absent while it thinks, and if it starts with thinking of another answer.
   */
  thoughtSeconds?: number;
  error?: string;
  edits?: DoneEdit[];
  /** Why the requested features are missing. */
  unread?: string;
}

export interface Turn {
  question: string;
  /** The path and body sent to the server. */
  request: { path: string; body: Record<string, unknown> };
  /** The model; absent in conversations of older versions. */
  model?: string | null;
  interventions: LiveIntervention[];
  /** The profile that the answer runs with. */
  profile?: string;
  layers: number[];
  /** The dictionary whose features are read, and its layer. */
  dictionary?: { name: string; layer: number };
  /** Number of tokens at the start that were carried over from another answer. */
  kept: number;
  answers: TurnAnswer[];
  /** Only for turns steered along a contrast set. */
  control?: ControlAnswer;
}

/** A layer's readings at each token: null and empty lists where nothing was read. */
export interface ReadLayer {
  layer: number;
  norms: (number | null)[];
  top: Candidate[][];
}

/** One answer to a question and what was read at its tokens. */
export interface Reading {
  id: string;
  created: number;
  model: string | null;
  question: string;
  profile?: string;
  interventions: LiveIntervention[];
  temperature: number;
  /** The path and body sent to the server. */
  request: { path: string; body: Record<string, unknown> };
  /** The number of blocks of the model; null if unknown. */
  depth: number | null;
  /** The prompt's tokens, then the answer's without the last one, after which nothing was read. */
  tokens: string[];
  /** How many of them are the prompt's. */
  prompt: number;
  layers: ReadLayer[];
  answer: string;
  finish: string | null;
  edits?: DoneEdit[];
  /** The reason of a failure, instead of an answer. */
  error?: string;
}

/** Where a conversation branches off another one: the question that differs. */
export interface Branch {
  conversation: string;
  turn: number;
}

/** A contrast set on the served model. */
export interface ContrastStatus {
  name: string;
  title: string;
  about: string;
  expected: Expected;
  /** A question, or the beginning of a text for models without a chat template. */
  example: string;
  state: "unused" | "making" | "ready" | "failed";
  /** Answers measured so far, while it is being made. */
  done?: number;
  total?: number;
  ready?: ContrastReady;
  error?: string;
}

/** What a contrast set's direction does on a model. */
export interface ContrastReady {
  /** Names of the saved direction and of its control, a random direction of the same norm. */
  vector: string;
  random: string;
  layer: number;
  /** AUROC on held-out texts, and the same with shuffled labels. */
  separation: number | null;
  shuffled: number | null;
  /** Null if every measured strength broke the language. */
  range: StrengthRange | null;
  measured: MeasuredStrength[];
  control: MeasuredStrength | null;
}

/** The same request with random directions instead of the contrast sets' own. */
export interface ControlAnswer {
  state: "running" | "done" | "failed";
  text: string;
  error?: string;
}

export interface ConversationSummary {
  id: string;
  title: string;
  from?: Branch;
  created: number;
  turns: number;
  running: boolean;
}

export interface Conversation {
  id: string;
  title: string;
  from?: Branch;
  created: number;
  /** Whether the model continues the raw text, without chat template. */
  raw: boolean;
  turns: Turn[];
}

export interface ServerStatus {
  url: string;
  ok: boolean;
  /** The status in words. */
  sentence: string;
  model: string | null;
  /** The same model for the Lab. */
  path: string | null;
  n_layer: number | null;
  n_embd: number | null;
  architecture: string | null;
  backend: string | null;
  /** Whether it has a chat template; true for servers of older versions. */
  chat_template: boolean;
  /** Of the model's file; absent for servers of older versions. */
  fingerprint?: string;
  /** The hook points of its blocks; empty for servers of older versions. */
  points: readonly ModelPoint[];
}

export interface LabStatus {
  url: string;
  ok: boolean;
  sentence: string;
  active: string | null;
  queued: number;
}

/** The attention weights of one head: a row per token, over all tokens. */
export interface HeadPicture {
  layer: number;
  head: number;
  weights: number[][];
}

/** A text's tokens, as in an experiment on the served model. */
export type TextTokens = { id: number; text: string }[];

/** The memory that a model needs and that this machine has. `unknown`: llama.cpp does not load the file. */
export type ModelMemory = Omit<MemoryVerdict, "fits"> & { fits: MemoryVerdict["fits"] | "unknown" };

/** A study of some jobs and the author's text so far. */
export interface StudyDraft {
  /** tapline's draft of the method. */
  method: string;
  /** What is still missing or wrong; empty for a complete package. */
  faults: string[];
  /** The complete package; absent while something is missing. */
  package?: string;
  /** The text in the form that `tapline study package --words` reads. */
  words: string;
  entries: { kind: string; title: string }[];
  /** What tapline omits, and why. */
  omissions: string[];
}

/** A model on this machine. */
export interface LocalModel {
  /** Its name or path for the services. */
  id: string;
  from: "embedded" | "cache" | "file";
  bytes: number;
  /** Null if it cannot be read. */
  header: GgufHeader | null;
  /** In Unix seconds, according to the file system; null if unknown. */
  lastUsed: number | null;
  served: boolean;
}

/** A label of a feature that a model has proposed. */
export interface MachineLabel {
  label: string;
  /** The model that proposed and tested it. */
  model: string;
  /** Where the model ran; null for the served one. */
  host: string | null;
  /** The number of excerpts that it saw. */
  proposedFrom: number;
  detection: Detection;
  created: number;
}

/** The response of `GET /api/models`. */
export interface ModelsHere {
  /** The hub's shared cache. */
  folder: string;
  models: LocalModel[];
  /** Unfinished downloads, except those of this workbench. */
  unfinished: Omit<UnfinishedDownload, "path">[];
  memory: { free: number; total: number };
  /** Free bytes on the disk of the cache; null without a cache. */
  diskFree: number | null;
  /** Why the workbench cannot switch the served model, and what to do; null if it can. */
  fixed: string | null;
}

/** The models in a repository of the hub, with the memory that their weights need. */
export interface ModelOffers {
  repository: string;
  offers: (HubOffer & { here: boolean; memory: ModelMemory })[];
}

export interface DownloadStatus {
  number: number;
  model: string;
  state: "running" | "done" | "stopped" | "failed";
  /** The current file. */
  file: string;
  /** Bytes of all files. */
  done: number;
  total: number;
  /** Network speed in bytes per second; 0 until known. */
  speed: number;
  error?: string;
}

/** Downloads and model switches. */
export interface ModelsStatus {
  downloads: DownloadStatus[];
  /** The current switch and its progress, or why the last one failed. */
  switching: { model: string; stage: string; fraction: number; error?: string } | null;
  /** Counts changes of the models on this machine. */
  changes: number;
}

/** What the workbench stores about a job. */
export interface JobNote {
  /** Made from its prompt. */
  title: string;
  /** The user's title, instead of it. */
  own?: string;
  note?: string;
  pinned?: true;
}

/** The studies service that drafts go to; null without one in the workbench's environment. */
export interface StudiesService {
  url: string | null;
}

/** The state that every tab shows. */
export interface State {
  version: string;
  /** When this workbench started, in Unix seconds. */
  started: number;
  /** Number of the last event included. */
  number: number;
  server: ServerStatus;
  lab: LabStatus;
  conversations: ConversationSummary[];
  jobs: JobSummary[];
  /** By the job's id. */
  notes: Record<string, JobNote>;
  models: ModelsStatus;
}

export type WorkbenchEvent =
  | { type: "server"; server: ServerStatus }
  | { type: "lab"; lab: LabStatus }
  | { type: "jobs"; jobs: JobSummary[] }
  | { type: "notes"; notes: Record<string, JobNote> }
  | { type: "library" }
  | { type: "contrasts"; contrasts: ContrastStatus[] }
  | { type: "control"; conversation: string; turn: number; control: ControlAnswer }
  | { type: "models"; models: ModelsStatus }
  | { type: "conversations"; conversations: ConversationSummary[] }
  | { type: "turn"; conversation: string; index: number; turn: Turn }
  | {
      type: "tokens";
      conversation: string;
      turn: number;
      answer: number;
      at: number;
      tokens: AnswerToken[];
      thoughtSeconds?: number;
    }
  | ({ type: "answer"; conversation: string; turn: number; answer: number } & Omit<
      TurnAnswer,
      "tokens" | "edited"
    >);

export interface Numbered {
  number: number;
  event: WorkbenchEvent;
}
