import type { RowsRead } from "../contracts/names.js";
import type { Entry } from "../contracts/studies/index.js";
import { glimpse } from "../report/markup.js";
import type { ConfigOf, Operation, ResultOf } from "./contracts.js";

/** A result as study packages have it. */
export type Bare<O extends Operation> = { [K in O]: Omit<ResultOf<K>, "artifacts" | "provenance"> }[O];

/** What a model said to a prompt, for an entry of its own. */
export interface Answer {
  title: string;
  prompt: string;
  answer: string;
  note: string;
}

/** What reports and studies say of an operation, apart from its findings. */
export interface Words<O extends Operation> {
  /** A report's heading: what kind of result it is, and of what. The configuration may not have come with it. */
  heading(result: ResultOf<O>, config: Partial<ConfigOf<O>>): [kind: string, subject: string];
  /** What was asked, in a line: the title of a study's entry. */
  subject(config: ConfigOf<O>): string;
  /** The texts that were read, where they fit into the prompt of a study's entry. */
  texts?(config: ConfigOf<O>): string[];
  /** The settings of generation, of what generates. */
  settings?(config: ConfigOf<O>): NonNullable<Entry["settings"]>;
  /** What the model said, prompt by prompt. */
  answers?(result: ResultOf<O>): Answer[];
  /** How it was made, in a sentence. */
  method(config: ConfigOf<O>): string;
  /** Ids of the figures whose tables tell the result; the others repeat it in finer steps. */
  tables: readonly string[];
  /** Ever shorter forms of a result that is too long for a field, each with what its numbers leave out beside digits. */
  shorter?(result: Bare<O>): Iterable<[leftOut: string, result: object]>;
}

/** The first of several texts, and how many more there are. */
export function firstOf([first = "", ...more]: readonly string[]): string {
  return `${glimpse(first, 180)}${more.length > 0 ? ` and ${more.length} more` : ""}`;
}

export function layersText({ layers }: { layers: readonly number[] }): string {
  return `layer ${layers.join(", ")}`;
}

/** Whose block outputs were read. */
export function whereText(config: { layers: readonly number[]; seed: number }): string {
  return `block output of ${layersText(config)}, seed ${config.seed}`;
}

/** Which of them of each text. */
export function rowsText(rows: RowsRead = "last"): string {
  const words = {
    last: "the last token's",
    mean: "the mean",
    response: "the response's mean",
    all: "every token's",
  };
  return words[rows];
}

/** A list cut to every second, fourth, … of its members, as often as that makes it shorter. */
export function* thinned<T>(list: readonly T[], keepLast = false): Generator<T[]> {
  for (let every = 2; every <= list.length; every *= 2) {
    yield list.filter((_, at) => at % every === 0 || (keepLast && at === list.length - 1));
  }
}
