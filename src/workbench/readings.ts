import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Answer, Question, TokenReport } from "../client/index.js";
import { conversationPattern, type ReadingRequest } from "../contracts/workbench.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { spreadLayers } from "../findings/layers.js";
import { HttpError } from "../http/index.js";
import { writePrivately } from "./private-file.js";
import { modelWithProfile, watchingProfile } from "./profile-run.js";
import { type Services, sentenceOf } from "./services.js";
import type { DoneEdit, Reading, ReadLayer } from "./wire.js";

const idPattern = new RegExp(conversationPattern);
/** Lens candidates per cell, layers, and tokens of an answer by default. */
const counts = { lens: 5, layers: 8, tokens: 48 } as const;

/** Answers to one question with two settings, and what was read at every token: each in a private file. */
export class Readings {
  /** Those being made. */
  readonly #running = new Map<string, Promise<Reading>>();
  readonly #ending = new AbortController();

  constructor(
    private readonly folder: string,
    private readonly services: Services,
  ) {}

  /** Asks a question with two settings. @returns the ids of the two readings, which are still being made @throws HttpError */
  async start(asked: ReadingRequest): Promise<{ ids: string[] }> {
    if (!this.services.server.ok) await this.services.look();
    const { server } = this.services;
    if (!server.ok || server.n_layer === null) throw new HttpError(503, server.sentence);
    for (const { profile } of asked.sides) {
      if (profile !== undefined && (await watchingProfile(this.services, profile))) {
        throw new HttpError(
          409,
          `The profile ${profile} has its own readings, which cannot be combined with those of a comparison.`,
        );
      }
    }
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const ids = asked.sides.map(() => randomBytes(8).toString("hex"));
    const { model, n_layer: depth } = server;
    for (const [at, id] of ids.entries()) {
      const { profile, interventions = [], temperature = 0 } = asked.sides[at] ?? {};
      const request = requestOf(asked, at, model, spreadLayers(depth, counts.layers));
      const begun: Reading = {
        ...{ id, created: Date.now() / 1000, model, question: asked.text, interventions, temperature },
        ...(profile !== undefined && { profile }),
        ...{ request, depth, tokens: [], prompt: 0, layers: [], answer: "", finish: null },
      };
      const reading = this.#read(begun).finally(() => this.#running.delete(id));
      this.#running.set(id, reading);
      // Its callers get the error.
      reading.catch(() => {});
    }
    return { ids };
  }

  /** A reading, once it is complete. @throws HttpError 404 */
  async get(id: string): Promise<Reading> {
    const running = this.#running.get(id);
    if (running !== undefined) return running;
    try {
      if (!idPattern.test(id)) throw new Error("malformed");
      return JSON.parse(await readFile(this.#path(id), "utf8")) as Reading;
    } catch {
      throw new HttpError(404, `Reading ${id.slice(0, 32)} does not exist.`);
    }
  }

  /** Ends the answers that are being generated. */
  close(): void {
    this.#ending.abort();
  }

  /** Resolves when all writes are done. */
  settled(): Promise<unknown> {
    return Promise.allSettled([...this.#running.values()]);
  }

  async #read(begun: Reading): Promise<Reading> {
    const { messages, prompt, ...request } = begun.request.body as { messages?: Question; prompt?: Question };
    let reading: Reading;
    try {
      const question = (messages ?? prompt) as Question;
      const { signal } = this.#ending;
      const [answer] = await this.services.model.answers(question, { request, signal });
      if (answer === undefined) throw new HttpError(502, "The server sent no answer.");
      reading = { ...begun, ...readingsOf(answer, layersOf(begun)) };
    } catch (error) {
      reading = { ...begun, error: error instanceof HttpError ? error.message : sentenceOf(error) };
    }
    if (!this.#ending.signal.aborted) {
      await writePrivately(this.#path(reading.id), JSON.stringify(reading));
      await this.#dropOldest();
    }
    return reading;
  }

  async #dropOldest(): Promise<void> {
    const names = (await readdir(this.folder)).filter((name) => name.endsWith(".json"));
    if (names.length <= workbenchLimits.readings) return;
    const dated = await Promise.all(
      names.map(async (name) => ({
        name,
        at: (await stat(join(this.folder, name)).catch(() => ({ mtimeMs: 0 }))).mtimeMs,
      })),
    );
    const old = dated.sort((a, b) => b.at - a.at).slice(workbenchLimits.readings);
    for (const { name } of old) await rm(join(this.folder, name), { force: true });
  }

  #path(id: string): string {
    return join(this.folder, `${id}.json`);
  }
}

function layersOf({ request }: Reading): number[] {
  return (request.body.tapline as { watch: { layers: number[] } }).watch.layers;
}

function requestOf(
  { text, raw = false, sides, max_tokens = counts.tokens, seed = 0 }: ReadingRequest,
  at: number,
  model: string | null,
  layers: number[],
): Reading["request"] {
  const { profile, interventions = [], temperature = 0 } = sides[at] ?? {};
  const body = {
    ...(raw ? { prompt: text } : { messages: [{ role: "user", content: text }] }),
    ...modelWithProfile(model, profile),
    ...{ max_tokens, temperature, seed },
    tapline: {
      ...(interventions.length > 0 && { interventions }),
      watch: { layers, norms: true, lens: counts.lens, positions: "all" },
    },
  };
  return { path: raw ? "/v1/completions" : "/v1/chat/completions", body };
}

/** The values of an answer's report by token, each at its position. */
export function readingsOf(
  { text, finishReason, tapline = {} }: Answer,
  layers: readonly number[],
): Pick<Reading, "tokens" | "prompt" | "layers" | "answer" | "finish" | "edits"> {
  const { prompt = [], tokens = [], interventions } = tapline;
  const generated = tokens.filter(({ token_id }) => token_id !== undefined);
  // A generated token's report is of the position before it.
  const rows: { token: string; read: TokenReport }[] = [
    ...prompt.map((read) => ({ token: read.token ?? "", read })),
    ...generated.slice(1).map((read, before) => ({ token: generated[before]?.token ?? "", read })),
  ];
  return {
    tokens: rows.map(({ token }) => token),
    prompt: prompt.length,
    layers: layers.map(
      (layer): ReadLayer => ({
        layer,
        norms: rows.map(({ read }) => read.norms?.[layer] ?? null),
        top: rows.map(({ read }) => read.lens?.[layer] ?? []),
      }),
    ),
    ...{ answer: text, finish: finishReason },
    ...(interventions !== undefined && { edits: interventions.map((edit) => edit as unknown as DoneEdit) }),
  };
}
