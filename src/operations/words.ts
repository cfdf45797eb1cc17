import type { BlockPoint, RowsRead } from "../contracts/names.js";
import type { Entry } from "../contracts/studies/index.js";
import { glimpse } from "../report/markup.js";
import type { ConfigOf, Operation, ResultOf } from "./contracts.js";

/** A result as study packages store it. */
export type Bare<O extends Operation> = { [K in O]: Omit<ResultOf<K>, "artifacts" | "provenance"> }[O];

/** A model's answer to a prompt, as a separate entry of a study. */
export interface Answer {
  title: string;
  prompt: string;
  answer: string;
  note: string;
}

/** How reports and studies describe an operation, apart from its findings. */
export interface Words<O extends Operation> {
  /** A report's heading: the kind of result and its subject. The configuration may be incomplete or missing. */
  heading(result: ResultOf<O>, config: Partial<ConfigOf<O>>): [kind: string, subject: string];
  /** The request in one line: the title of a study's entry. */
  subject(config: ConfigOf<O>): string;
  /** The input texts, if they can serve as the prompt of a study's entry. */
  texts?(config: ConfigOf<O>): string[];
  /** Sampling settings, for operations that generate. */
  settings?(config: ConfigOf<O>): NonNullable<Entry["settings"]>;
  /** The model's answers, one per prompt. */
  answers?(result: ResultOf<O>): Answer[];
  /** The method in one sentence. */
  method(config: ConfigOf<O>): string;
  /** Ids of the figures whose tables contain the result; the remaining figures repeat it in more detail. */
  tables: readonly string[];
  /** Increasingly short forms of a result that is too long for a field, each with a description of what it omits. */
  shorter?(result: Bare<O>): Iterable<[leftOut: string, result: object]>;
}

/** The first of several texts and the number of the rest. */
export function firstOf([first = "", ...more]: readonly string[]): string {
  return `${glimpse(first, 180)}${more.length > 0 ? ` and ${more.length} more` : ""}`;
}

export function layersText({ layers }: { layers: readonly number[] }): string {
  return `layer ${layers.join(", ")}`;
}

/** Which block outputs were read, or activations at another hook point, and the seed. */
export function whereText(
  config: { layers: readonly number[]; seed: number },
  point: BlockPoint = "block_out",
): string {
  return `${point === "block_out" ? "block output" : point} of ${layersText(config)}, seed ${config.seed}`;
}

/** Which of a text's activations were read. */
export function rowsText(rows: RowsRead = "last"): string {
  const words = {
    last: "the last token's",
    mean: "the mean",
    response: "the response's mean",
    all: "every token's",
  };
  return words[rows];
}

/** A list thinned to every second, fourth, … member, for as long as that shortens it. */
export function* thinned<T>(list: readonly T[], keepLast = false): Generator<T[]> {
  for (let every = 2; every <= list.length; every *= 2) {
    yield list.filter((_, at) => at % every === 0 || (keepLast && at === list.length - 1));
  }
}
