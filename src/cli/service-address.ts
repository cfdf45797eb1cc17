import { InvalidArgumentError, Option } from "commander";
import { ports } from "../contracts/limits.js";

/** The default address of the Lab. */
export const usualLab = `http://127.0.0.1:${ports.lab}`;

/** An option parser for a service's origin: `http://127.0.0.1:8980`, `localhost:8980`, or a port. */
export function origin(text: string): string {
  const full = /^\d+$/.test(text)
    ? `http://127.0.0.1:${text}`
    : /^[\w.-]+:\d+$/.test(text)
      ? `http://${text}`
      : text;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url?.protocol !== "http:" || url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    throw new InvalidArgumentError("It must be an address such as http://127.0.0.1:8980, or a port.");
  }
  return url.origin;
}

/** The address of a running Lab. */
export function labOption(): Option {
  return new Option("--lab <url>", "address or port of a running Lab")
    .env("TAPLINE_LAB_URL")
    .argParser(origin);
}

/** The address of a running `tapline serve`. */
export function serverOption(): Option {
  return new Option("--url <url>", "address or port of a running tapline serve")
    .env("TAPLINE_URL")
    .default(`http://127.0.0.1:${ports.inference}`)
    .argParser(origin);
}

/** Timeout for identifying a service at a default port, in milliseconds. */
export const greetingMs = 2000;

/**
 * Whether a tapline service is there, rather than nothing or another program.
 * @param ask resolves to true only for the expected service
 */
export async function answers(ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Error && ["TaplineError", "TimeoutError"].includes(error.name)) return false;
    throw error;
  }
}
