import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

/** A validation error, as the schema library reports it. */
export interface Failure {
  keyword: string;
  instancePath: string;
  params: Record<string, unknown>;
}

/** A compiled schema. */
export interface Compiled {
  Check(value: unknown): boolean;
  Errors(value: unknown): Failure[];
}

/** Compiles a schema. This takes milliseconds, so callers cache the result. */
export function compile(schema: TSchema): Compiled {
  // The library derives its types from the schema's; for large schemas that costs the compiler seconds.
  return Compile(schema) as unknown as Compiled;
}
