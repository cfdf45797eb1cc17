import { InvalidArgumentError, Option } from "commander";
import { ports } from "../contracts/limits.js";

/** The Lab's address where nobody names one. */
export const usualLab = `http://127.0.0.1:${ports.lab}`;

/** Parses the origin of a service for commander: `http://127.0.0.1:8980`, `localhost:8980`, or a port. */
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

/** Where a running Lab is. */
export function labOption(): Option {
  return new Option("--lab <url>", "address or port of a running Lab")
    .env("TAPLINE_LAB_URL")
    .argParser(origin);
}

/** Where a running `tapline serve` is. */
export function serverOption(): Option {
  return new Option("--url <url>", "address or port of a running tapline serve")
    .env("TAPLINE_URL")
    .default(`http://127.0.0.1:${ports.inference}`)
    .argParser(origin);
}

/** How long a service at a usual port has to say what it is, in milliseconds. */
export const greetingMs = 2000;

/**
 * Whether one of ours is there: nothing, or another program that took the port, is none.
 * @param ask what only ours answers with true
 */
export async function answers(ask: () => Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Error && ["TaplineError", "TimeoutError"].includes(error.name)) return false;
    throw error;
  }
}
