import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Transport } from "../client/transport.js";
import type { Job } from "../contracts/index.js";
import type { Recipe } from "../contracts/recipe.js";
import type { LabTask } from "./index.js";
import { Claims, type Shelf } from "./claims.js";
import { makeTimeoutMs } from "../cli/kept.js";
import { type LabSession, openLab } from "../cli/lab-session.js";

/** A Lab that a recipe's requests run in, and what they keep in its library. */
export interface RecipeLab {
  session: LabSession;
  /** Keeps what a job trained under the name that its step says. */
  keep(job: Job, task: LabTask, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const shelves: Readonly<Record<"dictionary" | "probe", Shelf>> = {
  dictionary: "/lab/dictionaries",
  probe: "/lab/probes",
};

/**
 * Opens the Lab, and takes the names that the recipe keeps something under.
 * @throws TaplineError, UserError where one of them is taken
 */
export async function openRecipeLab(
  named: string | undefined,
  { steps }: Recipe,
  onStart: () => void,
): Promise<RecipeLab> {
  const session = await openLab(named, onStart, { emptyLibrary: true });
  const http = new Transport(session.url, makeTimeoutMs, { service: "lab" });
  const claims = new Claims(http, "run it with --lab new");
  const close = async () => {
    await claims.release();
    await session.close();
  };
  try {
    for (const { keep, request } of steps) {
      if (keep !== undefined) await claims.claim(shelves[keptKindOf(request?.operation)], keep);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { session, keep: (job, task, signal) => keepMade({ session, http }, job, task, signal), close };
}

function keptKindOf(operation: string | undefined): "dictionary" | "probe" {
  return operation === "sae" ? "dictionary" : "probe";
}

interface Place {
  session: LabSession;
  http: Transport;
}

async function keepMade(
  { session, http }: Place,
  { id, result }: Job,
  { keep }: LabTask,
  signal: AbortSignal,
): Promise<void> {
  if (keep === undefined) return;
  const { name, kind, layer } = keep;
  const folder = await mkdtemp(join(tmpdir(), "tapline-kept-"));
  const fetched = (file: string) => session.lab.artifact(id, file, join(folder, file), { signal });
  const path = `${shelves[kind]}/${encodeURIComponent(name)}`;
  try {
    if (kind === "dictionary") {
      await fetched(`sae-normalization-${layer}.npz`);
      const from = await fetched(`sae-layer-${layer}.safetensors`);
      await http.json(path, { method: "PUT", body: { from }, signal });
    } else {
      const body = await readFile(await fetched(`probe-layer-${layer}.npz`));
      const model = result?.provenance.resolved_model.path as string;
      const query = new URLSearchParams({ layer: String(layer), model });
      await http.json(`${path}?${query}`, { method: "PUT", body, signal });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
