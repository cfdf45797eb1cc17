import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Transport } from "../client/transport.js";
import type { Capabilities } from "../contracts/index.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { Claims } from "./claims.js";
import { makeTimeoutMs } from "../cli/kept.js";

/** A serving model that live steps are run on. */
export interface LiveSession {
  http: Transport;
  /** Its name, and what serves it, for people. */
  model: string;
  runtime: string;
  /** The names that the steps keep something under. */
  claims: Claims;
  close(): Promise<void>;
}

interface Serving {
  model: string;
  revision?: string | undefined;
  signal: AbortSignal;
  onStage: (stage: string) => void;
}

/** The server at an address. @throws TaplineError, UserError where it holds no model that can be opened */
export async function joinServer(url: string): Promise<LiveSession> {
  return session(new Transport(url, makeTimeoutMs, { service: "serve" }), url, ({ claims }) =>
    claims.release(),
  );
}

/** A server for the occasion, with a library of its own, on a free port; it is gone when the session is closed. */
export async function startServer({ model, revision, signal, onStage }: Serving): Promise<LiveSession> {
  onStage("starting a server for the occasion");
  const { serve } = await import("../inference/process/supervisor.js");
  const home = await mkdtemp(join(tmpdir(), "tapline-serve-"));
  let serving: Awaited<ReturnType<typeof serve>> | undefined;
  const close = async () => {
    await serving?.close();
    await rm(home, { recursive: true, force: true });
  };
  try {
    serving = await serve({
      model,
      ...(revision !== undefined && { revision }),
      host: "127.0.0.1",
      port: 0,
      home,
      signal,
      onEvent: (event) => {
        if (event.event === "loading") onStage(`loading ${model}: ${Math.round(event.fraction * 100)} %`);
      },
    });
    return await session(new Transport(serving.url, makeTimeoutMs), serving.url, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function session(
  http: Transport,
  url: string,
  close: (live: LiveSession) => Promise<void>,
): Promise<LiveSession> {
  const told = await http.json<Capabilities>("/lab/capabilities");
  if (told.model === null) throw new UserError(`The server at ${url} holds no model at the moment.`);
  const live: LiveSession = {
    http,
    model: told.model,
    runtime: `tapline ${version}, tapline serve, ${told.backend}`,
    claims: new Claims(http, "run without --url"),
    close: () => close(live),
  };
  return live;
}
