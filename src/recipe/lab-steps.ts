import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Lab } from "../client/lab.js";
import type { Transport } from "../client/transport.js";
import type { Job } from "../contracts/index.js";
import type { Recipe, RecipeModel } from "../contracts/recipe.js";
import { UserError } from "../contracts/user-error.js";
import { type FromHub, setAt, writeRandomLike } from "../library/index.js";
import { resolveHubPlace } from "../models/hub/index.js";
import { Claims, type Shelf } from "./claims.js";
import type { LabTask } from "./outcome.js";
import { keptNames, savedKinds } from "./steps.js";

/** A running or temporary Lab. */
export interface RunningLab {
  lab: Lab;
  http: Transport;
  close(): Promise<void>;
}

/** The Lab for a recipe's requests, and the items that they save in its library. */
export interface RecipeLab {
  lab: Lab;
  /** Saves a job's trained items under their step's name. */
  keep(job: Job, task: LabTask, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const shelves: Readonly<Record<"dictionary" | "probe", Shelf>> = {
  dictionary: "/lab/dictionaries",
  probe: "/lab/probes",
};

/** What a recipe's Lab needs besides the recipe. */
export interface LabOptions {
  /** The model, which may have other layers for a step. */
  model: RecipeModel;
  /** Places of the recipe's dictionaries, by name. */
  dictionaries: Readonly<Record<string, string>>;
  signal: AbortSignal;
  onStage: (stage: string) => void;
}

/**
 * Opens the Lab, reserves the names under which the recipe saves items, and saves the dictionaries that it does not train.
 * @throws TaplineError, UserError if a name is taken or a dictionary has no place
 */
export async function openRecipeLab(
  open: () => Promise<RunningLab>,
  { steps, dictionaries = {} }: Recipe,
  options: LabOptions,
): Promise<RecipeLab> {
  const places = placesOf(dictionaries, options.dictionaries);
  const running = await open();
  const claims = new Claims(running.http, "run it with --lab new");
  const close = async () => {
    await claims.release();
    await running.close();
  };
  try {
    for (const { id, keep, request } of steps) {
      const kind = savedKinds[request?.operation ?? ""];
      if (keep === undefined || kind === undefined) continue;
      const { layers = [] } = request as { layers?: number[] };
      for (const name of keptNames(keep, options.model.layers?.[id] ?? layers))
        await claims.claim(shelves[kind], name);
    }
    await addGiven(running, claims, dictionaries, places, options);
  } catch (error) {
    await close();
    throw error;
  }
  return { lab: running.lab, keep: (job, task, signal) => keepMade(running, job, task, signal), close };
}

type RandomLike = NonNullable<NonNullable<Recipe["dictionaries"]>[string]["random"]>;

/** The places of the dictionaries that the recipe does not train, by name. @throws UserError */
function placesOf(
  dictionaries: NonNullable<Recipe["dictionaries"]>,
  given: LabOptions["dictionaries"],
): Map<string, string> {
  const needed = Object.entries(dictionaries).filter(([, { random }]) => random === undefined);
  const unknown = Object.keys(given).find((name) => !needed.some(([own]) => own === name));
  if (unknown !== undefined) {
    const known = needed.map(([name]) => name).join(", ") || "none";
    throw new UserError(`The recipe has no dictionary ${unknown} that could be given; it has ${known}.`);
  }
  return new Map(
    needed.map(([name, { what, from }]) => {
      const place = given[name] ?? from;
      if (place !== undefined) return [name, place];
      throw new UserError(`The recipe needs ${name}: use --dictionary ${name}=FOLDER. ${what}`);
    }),
  );
}

/** Saves the dictionaries that the recipe does not train, and all of each set, in the Lab's library. */
async function addGiven(
  { http }: RunningLab,
  claims: Claims,
  dictionaries: NonNullable<Recipe["dictionaries"]>,
  places: ReadonlyMap<string, string>,
  { signal, onStage }: LabOptions,
): Promise<void> {
  const fromHub: FromHub = (asked, choose) => resolveHubPlace(asked, choose, { signal });
  for (const [name, { random }] of Object.entries(dictionaries)) {
    const place = places.get(random?.like ?? name) as string;
    const set = await setAt(place, fromHub);
    const members =
      set === undefined
        ? [[name, place] as const]
        : [...set].map(([layer, file]) => [`${name}-${layer}`, join(place, file)] as const);
    for (const [one] of members) await claims.claim(shelves.dictionary, one);
    const folder = random === undefined ? undefined : await mkdtemp(join(tmpdir(), "tapline-random-"));
    try {
      for (const [done, [one, own]] of members.entries()) {
        signal.throwIfAborted();
        onStage(`adding ${name} ${done + 1}/${members.length}`);
        const from =
          folder === undefined ? own : await writeRandomLike(own, folder, random as RandomLike, fromHub);
        await http.json(`${shelves.dictionary}/${encodeURIComponent(one)}`, {
          ...{ method: "PUT", body: { from }, signal },
        });
        if (folder !== undefined) await rm(from);
      }
    } finally {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    }
  }
}

async function keepMade(
  running: RunningLab,
  job: Job,
  { keep }: LabTask,
  signal: AbortSignal,
): Promise<void> {
  if (keep === undefined) return;
  const folder = await mkdtemp(join(tmpdir(), "tapline-kept-"));
  try {
    for (const [i, name] of keptNames(keep.name, keep.layers).entries())
      await keepOne(running, job, { name, kind: keep.kind, layer: keep.layers[i] as number }, folder, signal);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function keepOne(
  { lab, http }: RunningLab,
  { id, result }: Job,
  { name, kind, layer }: { name: string; kind: "dictionary" | "probe"; layer: number },
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const fetched = (file: string) => lab.artifact(id, file, join(folder, file), { signal });
  const path = `${shelves[kind]}/${encodeURIComponent(name)}`;
  if (kind === "dictionary") {
    await fetched(`sae-normalization-${layer}.npz`);
    const from = await fetched(`sae-layer-${layer}.safetensors`);
    await http.json(path, { method: "PUT", body: { from }, signal });
    return;
  }
  const body = await readFile(await fetched(`probe-layer-${layer}.npz`));
  const model = result?.provenance.resolved_model.path as string;
  const query = new URLSearchParams({ layer: String(layer), model });
  await http.json(`${path}?${query}`, { method: "PUT", body, signal });
}
