import { readFile } from "node:fs/promises";
import { type BackendConfig, RouterConfig, routerLimits } from "../contracts/router.js";
import { UserError } from "../contracts/user-error.js";
import { InvalidInput, validate } from "../contracts/validate.js";

/**
 * Backends from a configuration file.
 * @throws UserError that names the file and what is wrong in it
 */
export async function readConfig(path: string): Promise<BackendConfig[]> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UserError(
      error.code === "ENOENT"
        ? `There is no file ${path}.`
        : `The file ${path} cannot be read: ${error.message}.`,
    );
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UserError(`The file ${path} is not valid JSON.`);
  }
  try {
    const { backends } = validate(RouterConfig, value);
    return checkBackends(backends);
  } catch (error) {
    if (error instanceof InvalidInput)
      throw new UserError(`The file ${path} is not usable: ${error.message}`);
    if (error instanceof UserError) throw new UserError(`The file ${path} is not usable: ${error.message}`);
    throw error;
  }
}

/**
 * Backends with their addresses in one form.
 * @throws UserError where an address is no http(s) origin or is named twice
 */
export function checkBackends(backends: readonly BackendConfig[]): BackendConfig[] {
  if (backends.length === 0) throw new UserError("At least one backend is needed.");
  if (backends.length > routerLimits.backends) {
    throw new UserError(`At most ${routerLimits.backends} backends are possible, got ${backends.length}.`);
  }
  const checked = backends.map((backend) => ({ ...backend, url: backendUrl(backend.url) }));
  const twice = checked.find(({ url }, index) => checked.findIndex((other) => other.url === url) < index);
  if (twice !== undefined) throw new UserError(`The backend ${twice.url} is named twice.`);
  return checked;
}

/** An address without a trailing slash and without the /v1 that clients' base URLs carry. */
function backendUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UserError(`A backend is an address such as http://127.0.0.1:8971, not ${text}.`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new UserError(`The backend ${url.origin} must be given without user, query and fragment.`);
  }
  return url.origin + url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
}
