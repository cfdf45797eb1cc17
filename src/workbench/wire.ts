/** What the service and its page tell each other; types alone, so that both sides read the same. */
import type { JobSummary } from "../contracts/index.js";
import type { LiveIntervention } from "../contracts/live.js";

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
  error?: string;
  edits?: DoneEdit[];
  /** Why the features that were asked for are not there. */
  unread?: string;
}

export interface Turn {
  question: string;
  /** The path and body that the server was sent. */
  request: { path: string; body: Record<string, unknown> };
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

/** Everything that every tab shows. */
export interface State {
  version: string;
  /** Number of the last event that is in it. */
  number: number;
  server: ServerStatus;
  lab: LabStatus;
  conversations: ConversationSummary[];
  jobs: JobSummary[];
}

export type WorkbenchEvent =
  | { type: "server"; server: ServerStatus }
  | { type: "lab"; lab: LabStatus }
  | { type: "jobs"; jobs: JobSummary[] }
  | { type: "library" }
  | { type: "conversations"; conversations: ConversationSummary[] }
  | { type: "turn"; conversation: string; index: number; turn: Turn }
  | { type: "tokens"; conversation: string; turn: number; answer: number; at: number; tokens: AnswerToken[] }
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
    };

export interface Numbered {
  number: number;
  event: WorkbenchEvent;
}
