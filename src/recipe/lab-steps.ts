import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Lab } from "../client/lab.js";
import type { Transport } from "../client/transport.js";
import type { Job } from "../contracts/index.js";
import type { Recipe } from "../contracts/recipe.js";
import { Claims, type Shelf } from "./claims.js";
import type { LabTask } from "./outcome.js";
import { savedKinds } from "./steps.js";

/** A running or temporary Lab. */
export interface RunningLab {
  lab: Lab;
  http: Transport;
  close(): Promise<void>;
}

/** The Lab for a recipe's requests, and the items that they save in its library. */
export interface RecipeLab {
  lab: Lab;
  /** Saves a job's trained item under its step's name. */
  keep(job: Job, task: LabTask, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const shelves: Readonly<Record<"dictionary" | "probe", Shelf>> = {
  dictionary: "/lab/dictionaries",
  probe: "/lab/probes",
};

/**
 * Opens the Lab, and reserves the names under which the recipe saves items.
 * @throws TaplineError, UserError if a name is taken
 */
export async function openRecipeLab(open: () => Promise<RunningLab>, { steps }: Recipe): Promise<RecipeLab> {
  const running = await open();
  const claims = new Claims(running.http, "run it with --lab new");
  const close = async () => {
    await claims.release();
    await running.close();
  };
  try {
    for (const { keep, request } of steps) {
      const kind = savedKinds[request?.operation ?? ""];
      if (keep !== undefined && kind !== undefined) await claims.claim(shelves[kind], keep);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { lab: running.lab, keep: (job, task, signal) => keepMade(running, job, task, signal), close };
}

async function keepMade(
  { lab, http }: RunningLab,
  { id, result }: Job,
  { keep }: LabTask,
  signal: AbortSignal,
): Promise<void> {
  if (keep === undefined) return;
  const { name, kind, layer } = keep;
  const folder = await mkdtemp(join(tmpdir(), "tapline-kept-"));
  const fetched = (file: string) => lab.artifact(id, file, join(folder, file), { signal });
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
