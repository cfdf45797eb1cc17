import type { TObject } from "typebox";

/** What a field names on the Lab's machine: a model as people name them, a file or folder, or that or a web address. */
export type Place = "model" | "path" | "path or address";

/** What an operation accepts and answers. */
export interface Contract {
  submission: TObject;
  result: TObject;
  /** What it needs and shows, in a line of MCP's lab_submit. */
  forAgents: string;
  /** Its fields, beside `model`, that name places. See {@link placeFields}. */
  places: Readonly<Record<string, Place>>;
  /**
   * Checks what the fields mean for each other, with defaults filled in; places are looked at afterwards. May fill in
   * what depends on other fields and was not given.
   * @throws InvalidInput
   */
  check(config: never, given: Record<string, unknown>): void;
}
