/**
 * `npm run bench -- peers`: tapline beside the tools that people look into transformers with, on the same weights
 * (SmolLM2-135M, F32; for tapline Q8_0, too), token ids, threads and machine. Every round runs all of them one after
 * another; a ratio is the fastest peer's time of a round over tapline's time of the same round. Before a time counts,
 * what was found has to be what tapline found.
 *
 * `--processor` counts the processor's time of one thread in place of the clock's of all: for a machine that others use, on
 * which the clock says nothing.
 */
import { spawnSync } from "node:child_process";
import os from "node:os";
import { fileURLToPath } from "node:url";
import type { EnvironmentName } from "../../test/support/real/environments.js";
import { type SmolLm2, smolLm2Model } from "../../test/support/real/models.js";
import { type Row, row } from "../figures.js";
import { Ours } from "./ours.js";
import { type Answer, type Found, type Task, tasksFor } from "./tasks.js";
import { Lines, type ToolName, tools } from "./tool.js";

const forms = ["F32", "Q8_0"] as const;
const toolNames = Object.keys(tools) as ToolName[];

/** Least ratios over the fastest peer, by the beginning of a task's name. */
const goals: ReadonlyArray<[task: string, f32: number, q8: number, rounds: number]> = [
  ["cold start", 5, 5, 3],
  ["capture, 4 layers x 256", 1, 2, 7],
  ["capture, 4 layers x 16", 1.5, 2, 15],
  ["extraction", 1, 2, 3],
  ["compare, 9 strengths x 32 tokens, a run", 5, 5, 3],
  ["compare, 9 strengths x 32 tokens, batched", 1, 1, 3],
  ["generation", 1, 3, 3],
  ["probe", 1, 2, 3],
];

/**
 * Ratios are taken over the fastest peer, so one that needs so many times as long says all that it can in one round. The
 * table tells how many rounds it had.
 */
const hopeless = 1.5;

export async function benchPeers({
  quick,
  rounds,
  only = "",
  processor = false,
}: {
  quick: boolean;
  rounds?: number;
  only?: string;
  processor?: boolean;
}): Promise<Row[]> {
  const threads = processor ? 1 : os.availableParallelism();
  const clock: Clock = processor
    ? { unit: "cpu s", of: (answer) => answer.processor }
    : { unit: "s", of: (answer) => answer.seconds };
  const model = await smolLm2Model();
  const ours = {
    F32: await Ours.open(model.f32, threads),
    Q8_0: await Ours.open(model.q8_0, threads),
  };
  const peers = new Peers(model, threads);
  try {
    const tasks = await tasksFor(ours.F32.model);
    const wanted = new RegExp(only);
    const rows: Row[] = [];
    const first = tasks["capture, 4 layers x 256 tokens"] as Task;
    if (wanted.test("cold start, memory")) {
      const cold = processor ? { ...clock, of: (answer: Answer) => answer.in_all } : clock;
      rows.push(...(await benchCold(model, first, quick ? 1 : (rounds ?? 3), threads, cold)));
    }
    for (const [name, task] of Object.entries(tasks).filter(([each]) => wanted.test(each))) {
      const [, f32, q8, usual] = goals.find(([start]) => name.startsWith(start)) as (typeof goals)[number];
      const sides = await peers.sides(task);
      for (const form of forms) sides.set(`tapline ${form}`, (each) => ours[form].run(each));
      if (task.task === "capture") for (const run of sides.values()) await run(task);
      const measured = new Measured(name);
      for (let round = 0; round < (quick ? 1 : (rounds ?? usual)); round++) {
        for (const [side, run] of sides) measured.add(side, await run(task));
        if (round > 0 || task.task === "capture") continue;
        for (const side of measured.hopeless(clock)) sides.delete(side);
      }
      rows.push(...measured.rows({ F32: f32, Q8_0: q8 }, clock));
    }
    return rows;
  } finally {
    await peers.close();
    for (const form of forms) await ours[form].close();
  }
}

type Run = (task: Task) => Promise<Answer>;

/** What is measured of an answer. */
export interface Clock {
  unit: string;
  of(answer: Answer): number;
}

/** The peers' processes, started when first asked for. */
class Peers {
  readonly #open = new Map<string, Lines>();

  constructor(
    readonly model: SmolLm2,
    readonly threads: number,
  ) {}

  /** Who takes part in a task. Learning has no tool of its own: transformers, scikit-learn and PyTorch are it. */
  async sides({ task }: Task): Promise<Map<string, Run>> {
    const sides = new Map<string, Run>();
    for (const name of task === "learn" ? (["transformers"] as const) : toolNames) {
      // repeng's environment has scikit-learn beside the same transformers and PyTorch.
      const lines = await this.#process(name, task === "learn" ? "repeng" : tools[name]);
      sides.set(name, (each) => lines.run(each));
    }
    return sides;
  }

  async #process(name: ToolName, within: EnvironmentName): Promise<Lines> {
    const key = `${name} in ${within}`;
    const known = this.#open.get(key) ?? (await Lines.tool(name, this.model.folder, this.threads, within));
    this.#open.set(key, known);
    return known;
  }

  async close(): Promise<void> {
    for (const lines of this.#open.values()) await lines.close();
  }
}

/** Answers of one task, a list a side. */
export class Measured {
  readonly #answers = new Map<string, Answer[]>();

  constructor(readonly task: string) {}

  add(side: string, answer: Answer): void {
    if (answer.unable) return;
    this.#answers.set(side, [...(this.#answers.get(side) ?? []), answer]);
  }

  /** Peers that cannot be the fastest one. */
  hopeless({ of }: Clock): string[] {
    const firsts = [...this.#answers]
      .filter(([side]) => !side.startsWith("tapline"))
      .map(([side, [answer]]): [string, number] => [side, of(answer as Answer)]);
    const best = Math.min(...firsts.map(([, spent]) => spent));
    return firsts.filter(([, spent]) => spent > hopeless * best).map(([side]) => side);
  }

  rows(least: Readonly<Record<(typeof forms)[number], number>>, { unit, of }: Clock): Row[] {
    const sides = [...this.#answers];
    const rounds = Math.max(...sides.map(([, all]) => all.length));
    const exact = this.#answers.get("tapline F32")?.[0] as Answer;
    for (const [side, [answer]] of sides) {
      if (side !== "tapline Q8_0") checkSame(this.task, side, answer as Answer, exact);
    }
    const best = (round: number) =>
      Math.min(
        ...sides.flatMap(([side, all]) =>
          side.startsWith("tapline") ? [] : all.slice(round, round + 1).map(of),
        ),
      );
    return [
      ...sides.map(([side, all]) => ({
        ...row(`${this.task}: ${side}`, all.map(of), unit),
        ...(all.length < rounds ? { rounds: all.length } : {}),
      })),
      ...forms.map((form) => {
        const own = this.#answers.get(`tapline ${form}`) as Answer[];
        const ratios = own.map((answer, round) => best(round) / of(answer));
        return row(`${this.task}: ${form} over the best peer`, ratios, "x", { least: least[form] });
      }),
    ];
  }
}

/** @throws Error where a side did other work than tapline on the same weights */
function checkSame(task: string, side: string, found: Found, ours: Found): void {
  const differ = (what: string, a: unknown, b: unknown) => {
    throw new Error(
      `${task}: ${side} has another ${what}: ${JSON.stringify(a)}, tapline ${JSON.stringify(b)}.`,
    );
  };
  for (const [i, norm] of (found.norms ?? []).entries()) {
    const own = ours.norms?.[i] as number;
    if (!(Math.abs(norm - own) <= 1e-3 * own)) differ("block output", found.norms, ours.norms);
  }
  if (found.next !== undefined && found.next !== ours.next) differ("next token", found.next, ours.next);
  if (found.rows !== ours.rows) differ("number of rows", found.rows, ours.rows);
  for (const [i, tokens] of (found.continuations ?? []).entries()) {
    // A tie may part them late; what is timed is the same number of steps.
    const own = ours.continuations?.[i] ?? [];
    const same = tokens.slice(0, 8).every((token, at) => token === own[at]);
    if (!same || tokens.length !== own.length) differ(`continuation ${i}`, tokens, own);
  }
  if (Math.abs((found.accuracy ?? 0) - (ours.accuracy ?? 0)) > 0.1) {
    differ("accuracy", found.accuracy, ours.accuracy);
  }
}

/** From the start of a process to its first capture in hand, and the most memory that it held. */
async function benchCold(
  model: SmolLm2,
  task: Task,
  rounds: number,
  threads: number,
  clock: Clock,
): Promise<Row[]> {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, encoding: "utf8" });
  if (built.status !== 0) throw new Error(`npm run build failed: ${built.stdout}`);
  const start = new Measured("cold start to first capture, 256 tokens");
  const memory = new Measured("memory at peak, load and capture of 256 tokens");
  const sides: Array<[string, () => Promise<Lines>]> = [
    ...toolNames.map((name): [string, () => Promise<Lines>] => [
      name,
      () => Lines.tool(name, model.folder, threads),
    ]),
    ["tapline F32", async () => Lines.tapline(model.f32, threads)],
    ["tapline Q8_0", async () => Lines.tapline(model.q8_0, threads)],
  ];
  for (let round = 0; round < rounds; round++) {
    for (const [side, open] of sides) {
      const begin = performance.now();
      const lines = await open();
      const answer = await lines.run(task);
      const seconds = (performance.now() - begin) / 1000;
      await lines.close();
      start.add(side, { ...answer, seconds });
      memory.add(side, answer);
    }
  }
  const held: Clock = { unit: "MiB", of: ({ peak }) => peak / 2 ** 20 };
  return [...start.rows({ F32: 5, Q8_0: 5 }, clock), ...memory.rows({ F32: 1, Q8_0: 2 }, held)];
}
