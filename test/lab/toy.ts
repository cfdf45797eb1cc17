/** Operations on models that compute nothing: words for tokens, and contexts that answer what a test makes of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config, Progress } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import type { ContextOptions, Model } from "../../src/native/index.js";
import { wordModel } from "./word-model.js";

export const there = { supported: true };

/** A model of words whose contexts are what a test makes of them. */
export function toy(context: object, info: object = {}) {
  const contexts: ContextOptions[] = [];
  const closed: string[] = [];
  const model = {
    ...wordModel({ nCtxTrain: 0, bytes: 1, name: "toy", quantization: "F32", architecture: "toy", ...info }),
    detokenize: async (tokens: Int32Array) => [...tokens].join("+"),
    createContext: async (options: ContextOptions) => {
      contexts.push(options);
      return {
        blockOutputs: { supported: true, sidePath: "" },
        close: async () => void closed.push("context"),
        reset: async () => {},
        ...context,
      };
    },
    close: async () => void closed.push("model"),
  } as unknown as Model;
  return { model, contexts, closed };
}

/** Ends nothing, and has to reach everything that an operation asks of the addon. */
export const { signal } = new AbortController();

/** An operation's inputs, with a temporary folder for its files, and what it reported. */
export function inputIn<C extends Config>(folder: string, config: object, model: Model, other?: Model) {
  const told: Progress[] = [];
  const place = mkdtempSync(join(folder, "artifacts-"));
  return {
    ...{ config: config as C, model, artifacts: new Artifacts(place), clock: new StageClock(), told, place },
    progress: (one: Progress) => void told.push(one),
    signal,
    openOther: async () => other as Model,
  };
}

/** A folder that is tapline's home until it is left. */
export function ownHome(name: string): { folder: string; leave: () => void } {
  const folder = mkdtempSync(join(tmpdir(), `tapline-${name}-`));
  const home = process.env.TAPLINE_HOME;
  process.env.TAPLINE_HOME = folder;
  return {
    folder,
    leave: () => {
      if (home === undefined) delete process.env.TAPLINE_HOME;
      else process.env.TAPLINE_HOME = home;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
