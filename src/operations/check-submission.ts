import { missing } from "../contracts/invalid-input.js";
import { isBucket, isUrl } from "../contracts/names.js";
import { InvalidInput, shown, validate } from "../contracts/validate.js";
import type { Place } from "./contract.js";
import { type Config, contracts, type Operation, operations } from "./contracts.js";

/**
 * Checks everything about a submission that can be checked without its model.
 * @returns the submission with defaults filled in
 * @throws InvalidInput
 */
export function checkSubmission(body: unknown): Config {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new InvalidInput("", "The body must be a JSON object.");
  }
  const given = body as Record<string, unknown>;
  const operation = given.operation as Operation | undefined;
  if (operation === undefined) throw missing("operation", `is required; one of ${operations.join(", ")}.`);
  if (!operations.includes(operation)) {
    throw new InvalidInput("operation", `must be one of ${operations.join(", ")}, got ${shown(operation)}.`);
  }
  const { submission, check, places } = contracts[operation];
  const config = validate(submission, given) as Record<string, unknown>;
  check(config as never, given);
  for (const [field, place] of Object.entries(places)) {
    const value = config[field];
    if (place === "model" || typeof value !== "string" || isAbsolute(value)) continue;
    const [isAllowed, urls] = addresses[place] ?? [];
    if (isAllowed?.(value)) continue;
    throw new InvalidInput(field, `must be an absolute path${urls ?? ""}, got ${shown(value)}.`);
  }
  return config as unknown as Config;
}

/** Alternatives to paths, and their names in errors. */
const addresses: Partial<Record<Place, [isAllowed: (value: string) => boolean, urls?: string]>> = {
  "path or address": [(value) => /^https?:\/\//.test(value)],
  "path or URL": [isUrl, " or a URL (s3, gs, https or http)"],
  "path or bucket": [isBucket, " or a URL (s3 or gs)"],
};

/** On POSIX or Windows: this check does not know which of the two the Lab runs on. */
function isAbsolute(path: string): boolean {
  return /^(?:[/\\]|[A-Za-z]:[/\\])/.test(path);
}
