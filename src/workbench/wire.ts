/** What the service and its page tell each other; types alone, so that both sides read the same. */
import type { JobSummary } from "../contracts/index.js";
import type { LiveIntervention } from "../contracts/live.js";
import type { ModelPoint } from "../contracts/names.js";

export interface Candidate {
  token_id: number;
  token: string;
  probability: number;
}

/** One generated token, with what was seen in the row that chose it. */
export interface AnswerToken {
  /** Absent where a piece of text came without it. */
  id?: number;
  text: string;
  thinking?: boolean;
  /** Ends the text and is none of it. */
  special?: boolean;
  /** Of the token itself, before temperature and other sampling. */
  probability?: number;
  candidates?: Candidate[];
  /** In the order of the turn's layers. */
  norms?: number[];
  lens?: Candidate[][];
  probes?: Record<string, number | null>;
  /** Features of the turn's dictionary, the strongest first. */
  features?: FeatureScore[];
}

export interface FeatureScore {
  feature: number;
  activation: number;
}

/** What an intervention did, as the server told it. */
export interface DoneEdit {
  kind?: string;
  layer?: number;
  vector?: string;
  rows: number;
  mean_row_length?: number;
  mean_change_length?: number;
  note?: string;
}

export type AnswerState = "running" | "done" | "stopped" | "failed";

export interface TurnAnswer {
  state: AnswerState;
  /** False for the one that stands beside it, without the interventions. */
  edited: boolean;
  tokens: AnswerToken[];
  finish: string | null;
  /**
   * How long it thought, as the workbench heard it: from its first thought to the first word said, or to its end. Absent
   * while it still thinks, and where it begins with another answer's thoughts.
   */
  thoughtSeconds?: number;
  error?: string;
  edits?: DoneEdit[];
  /** Why the features that were asked for are not there. */
  unread?: string;
}

export interface Turn {
  question: string;
  /** The path and body that the server was sent. */
  request: { path: string; body: Record<string, unknown> };
  /** Which model was asked; absent in conversations of earlier versions. */
  model?: string | null;
  interventions: LiveIntervention[];
  layers: number[];
  /** Whose features are read, and at which layer. */
  dictionary?: { name: string; layer: number };
  /** Tokens at the answer's beginning that were kept from another answer. */
  kept: number;
  answers: TurnAnswer[];
}

/** Where a conversation left another one: the question that goes on otherwise. */
export interface Branch {
  conversation: string;
  turn: number;
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
  /** Whether the model goes on with the texts as they are, without chat template. */
  raw: boolean;
  turns: Turn[];
}

export interface ServerStatus {
  url: string;
  ok: boolean;
  /** How it is, in words. */
  sentence: string;
  model: string | null;
  /** What the Lab can open the same model by. */
  path: string | null;
  n_layer: number | null;
  n_embd: number | null;
  architecture: string | null;
  backend: string | null;
  /** What its blocks have for experiments; a server of an earlier version does not tell. */
  points: readonly ModelPoint[];
}

export interface LabStatus {
  url: string;
  ok: boolean;
  sentence: string;
  active: string | null;
  queued: number;
}

/** How one head read a text: a row for each token, what it read of each. */
export interface HeadPicture {
  layer: number;
  head: number;
  weights: number[][];
}

/** A text's tokens, as an experiment on the served model would see them. */
export type TextTokens = { id: number; text: string }[];

/** What a model takes beside what this machine has; bytes. */
export interface ModelMemory {
  needed: number;
  free: number;
  total: number;
  /** `unknown`: llama.cpp does not load the file. */
  fits: "yes" | "tight" | "no" | "unknown";
  /** What a person should know, unless it simply fits. */
  sentence: string;
}

/** What becomes of some jobs and a person's words, as far as they are written. */
export interface StudyDraft {
  /** How the jobs were done, in tapline's words; a person goes on from there. */
  method: string;
  /** What is still missing or wrong; none: it is a package. */
  faults: string[];
  /** The package as it is saved; absent while something is missing. */
  package?: string;
  /** The words as `tapline study package --words` reads them, with their empty places. */
  words: string;
  entries: { kind: string; title: string }[];
  /** What tapline leaves out, and why. */
  omissions: string[];
}

/** A model that is on this machine. */
export interface LocalModel {
  /** What the services open it by. */
  id: string;
  from: "embedded" | "cache" | "file";
  bytes: number;
  /** What its file says of itself; null where that cannot be read. */
  header: {
    architecture: string;
    parameters: number;
    quantization: string | null;
    context: number | null;
    blocks: number | null;
    hidden: number | null;
  } | null;
  /** In Unix seconds, as the file system says; null where nobody keeps count. */
  lastUsed: number | null;
  served: boolean;
}

/** What `GET /api/models` tells. */
export interface ModelsHere {
  /** The hub's shared cache. */
  folder: string;
  models: LocalModel[];
  /** Downloads that were begun and are not going on here. */
  unfinished: { repository: string; bytes: number; underWay: boolean }[];
  memory: { free: number; total: number };
  /** Of the disk that the cache is on; null where there is no cache yet. */
  diskFree: number | null;
  /** Why the served model cannot be switched from here, and what to do; null where it can. */
  fixed: string | null;
}

/** What a repository of the hub has; its weights beside this machine's memory. */
export interface ModelOffers {
  repository: string;
  offers: { id: string; file: string; parts: number; bytes: number; here: boolean; memory: ModelMemory }[];
}

export interface DownloadStatus {
  number: number;
  model: string;
  state: "running" | "done" | "stopped" | "failed";
  /** The file under way. */
  file: string;
  /** Bytes of all its files. */
  done: number;
  total: number;
  /** Bytes a second of the network; 0 until it is known. */
  speed: number;
  error?: string;
}

/** What goes on with models, for every tab. */
export interface ModelsStatus {
  downloads: DownloadStatus[];
  /** The model that the server is being given, how far that is, and why the last time failed. */
  switching: { model: string; stage: string; fraction: number; error?: string } | null;
  /** Rises whenever what is here has changed. */
  changes: number;
}

/** Everything that every tab shows. */
export interface State {
  version: string;
  /** Number of the last event that is in it. */
  number: number;
  server: ServerStatus;
  lab: LabStatus;
  conversations: ConversationSummary[];
  jobs: JobSummary[];
  models: ModelsStatus;
}

export type WorkbenchEvent =
  | { type: "server"; server: ServerStatus }
  | { type: "lab"; lab: LabStatus }
  | { type: "jobs"; jobs: JobSummary[] }
  | { type: "library" }
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
  | {
      type: "answer";
      conversation: string;
      turn: number;
      answer: number;
      state: AnswerState;
      finish: string | null;
      error?: string;
      edits?: DoneEdit[];
      unread?: string;
      thoughtSeconds?: number;
    };

export interface Numbered {
  number: number;
  event: WorkbenchEvent;
}
