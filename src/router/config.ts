import { readFile } from "node:fs/promises";
import { type BackendConfig, RouterConfig, routerLimits } from "../contracts/router.js";
import { UserError } from "../contracts/user-error.js";
import { InvalidInput, validate } from "../contracts/validate.js";

/**
 * Backends from a configuration file.
 * @throws UserError with the file and the problem
 */
export async function readConfig(path: string): Promise<BackendConfig[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UserError(
      error.code === "ENOENT" ? `${path} does not exist.` : `Cannot read ${path}: ${error.message}.`,
    );
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UserError(`${path} is not valid JSON.`);
  }
  try {
    const { backends } = validate(RouterConfig, value);
    return checkBackends(backends);
  } catch (error) {
    if (error instanceof InvalidInput)
      throw new UserError(`${path} is not a valid configuration: ${error.message}`);
    if (error instanceof UserError)
      throw new UserError(`${path} is not a valid configuration: ${error.message}`);
    throw error;
  }
}

/**
 * Backends with normalized addresses.
 * @throws UserError if an address is invalid or given twice
 */
export function checkBackends(backends: readonly BackendConfig[]): BackendConfig[] {
  if (backends.length === 0) throw new UserError("At least one backend is required.");
  if (backends.length > routerLimits.backends) {
    throw new UserError(`At most ${routerLimits.backends} backends are allowed, got ${backends.length}.`);
  }
  const checked = backends.map((backend) => ({ ...backend, url: backendUrl(backend.url) }));
  const twice = checked.find(({ url }, index) => checked.findIndex((other) => other.url === url) < index);
  if (twice !== undefined) throw new UserError(`The backend ${twice.url} is given twice.`);
  return checked;
}

/** An address without a trailing slash and without the /v1 that clients' base URLs carry. */
function backendUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UserError(`A backend must be an address such as http://127.0.0.1:8971, got ${text}.`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new UserError(`The backend ${url.origin} must not have a user, query or fragment.`);
  }
  return url.origin + url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
}
