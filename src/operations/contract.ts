import type { TObject } from "typebox";

/** What a field names on the Lab's machine: a model (path, hub id or `demo`), a file or folder, or either a path or a web address. */
export type Place = "model" | "path" | "path or address";

/** What an operation accepts and returns. */
export interface Contract {
  submission: TObject;
  result: TObject;
  /** What it needs and shows: its line in the description of MCP's lab_submit. */
  forAgents: string;
  /** Fields other than `model` that name places. See {@link placeFields}. */
  places: Readonly<Record<string, Place>>;
  /**
   * Checks constraints between fields after defaults are filled in; places are checked afterwards. May fill in a field
   * that was not given and whose default depends on other fields.
   * @throws InvalidInput
   */
  check(config: never, given: Record<string, unknown>): void;
}
