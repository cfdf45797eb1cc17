import type { TObject } from "typebox";

/**
 * Kinds of places on the Lab's machine or elsewhere: a model (path, hub id or `demo`), a file or folder, either a path or a web
 * address, a URL of any kind, or a folder in object storage.
 */
export type Place = "model" | "path" | "path or address" | "path or URL" | "path or bucket";

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
