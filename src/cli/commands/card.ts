import { join } from "node:path";
import type { Command } from "commander";
import type { Card, CardTarget } from "../../contracts/card.js";
import { cardLimits } from "../../contracts/card-limits.js";
import { UsageError } from "../exit-code.js";
import { filled, integerBetween, numbersThat } from "../options.js";
import { partOf } from "../part-options.js";
import { type ServerOptions, serverCommand } from "../server-command.js";
import { endBy, stoppable } from "../stop-signal.js";

interface CardCommandOptions extends ServerOptions {
  out?: string;
  strengths: number[];
  random: number;
  seed: number;
  maxTokens: number;
  texts?: string;
  prompts?: string;
  probe?: string;
  contains?: string;
  classify?: string;
  judged?: string;
  shard?: [number, number];
  quiet?: boolean;
}

const strengthList = numbersThat(
  (factor) => factor > 0 && factor <= 100,
  `Write 1 to ${cardLimits.strengths} factors above 0, such as 0.5,1,2.`,
  (factors) => factors.length <= cardLimits.strengths && new Set(factors).size === factors.length,
);

/** `tapline card`: what a profile does and costs. */
export function registerCard(program: Command): void {
  serverCommand(program, "card", "Measure a profile's effect and cost on the running server's model.")
    .argument("<profile>", "a saved profile (see tapline profile)")
    .option(
      "--out <dir>",
      "output folder for card.html and card.json (default: tapline-card-<profile>)",
      filled,
    )
    .option("--strengths <list>", "factors on the profile's strengths", strengthList, [0.5, 1, 2])
    .option(
      "--random <number>",
      "random vectors of the same norm per strength, as a control",
      integerBetween(0, cardLimits.random),
      2,
    )
    .option("--probe <name>", "target: mean score of a saved probe over the answers")
    .option("--contains <text>", "target: share of answers that contain a text", filled)
    .option("--classify <question>", "target: probability of yes to a question about each answer", filled)
    .option("--judged <file>", "target: JSON lines with a prompt, and what its answer contains or matches")
    .option("--texts <file>", "held-out texts instead of the bundled ones")
    .option("--prompts <file>", "prompts instead of the bundled ones")
    .option("--max-tokens <number>", "length of answers", integerBetween(1, 512), cardLimits.answer_tokens)
    .option("--seed <number>", "of random vectors and bootstrap intervals", integerBetween(0, 2 ** 31 - 1), 0)
    .option(
      "--shard <i/n>",
      "measure every n-th text, question and prompt starting at i (from 0), into --out, the folder of all parts",
      partOf,
    )
    .option("--quiet", "hide progress")
    .addHelpText(
      "after",
      `
Measures the target, cross-entropy and KL divergence on held-out texts, changed
answers, multiple choice, answer formats, refusals of harmless prompts, and
speed: without the profile, at strength zero, at each strength, and with random
vectors of the same norm. tapline reproduce card.json repeats a card. With
several servers, each can measure a part (--shard); tapline merge computes the
card from all of them.

Examples:
  tapline card polite --classify "Is this text polite?"
  tapline card forgetful --contains unknown --strengths 0.5,1 --out card`,
    )
    .action(runCommand);
}

async function runCommand(profile: string, options: CardCommandOptions): Promise<void> {
  const target = targetIn(options);
  const { out = `tapline-card-${profile}`, quiet, json, url } = options;
  const [{ readPrompts }, { bundledData }] = await Promise.all([
    import("../input-files.js"),
    import("../../card/data/index.js"),
  ]);
  const given = {
    ...(options.texts !== undefined && { texts: limited(await readPrompts(options.texts), "texts") }),
    ...(options.prompts !== undefined && { prompts: limited(await readPrompts(options.prompts), "prompts") }),
  };
  const request = {
    ...{ profile, strengths: options.strengths, random: options.random, seed: options.seed },
    ...{ answerTokens: options.maxTokens, target, given, data: { ...bundledData, ...given } },
  };
  const asked = { quiet: quiet === true || json === true };
  if (options.shard !== undefined) return measurePart(url, request, options.shard, { ...options, ...asked });
  const card = await measureCard(url, request, asked);
  if (card === undefined) return;
  const [{ writeCard }, { cardPicture }, { print, printJson }] = await Promise.all([
    import("../../card/files.js"),
    import("../../card/picture.js"),
    import("../output.js"),
  ]);
  const page = await writeCard(out, card);
  await (json ? printJson(card) : print(`${cardPicture(card)}\n\n${page}`));
}

type CardRequest = import("../../card/run.js").CardRequest;

/** Measures a part of a card and writes its file. */
async function measurePart(
  url: string,
  request: CardRequest,
  part: [number, number],
  { out, json, quiet }: { out?: string; json?: boolean; quiet: boolean },
): Promise<void> {
  if (out === undefined) throw new UsageError("--shard requires --out, the folder of all parts.");
  if (part[0] >= part[1]) {
    throw new UsageError(`--shard must be i/n with i from 0 to n - 1, got ${part.join("/")}.`);
  }
  const items = await measure(url, request, { quiet, part });
  if (items === undefined) return;
  const [{ writeCardPart }, { print, printJson }] = await Promise.all([
    import("../../card/parts.js"),
    import("../output.js"),
  ]);
  const file = await writeCardPart(out, part, items);
  await (json
    ? printJson({ part, folder: out, file })
    : print(`Wrote ${join(out, file)}; tapline merge computes the card from all parts.`));
}

/** Measures a card with a progress line; Ctrl-C ends it. @returns undefined if it was stopped */
export async function measureCard(
  url: string,
  request: CardRequest,
  { quiet }: { quiet: boolean },
): Promise<Card | undefined> {
  const items = await measure(url, request, { quiet, part: [0, 1] });
  return items && (await import("../../card/parts.js")).cardOf([items]);
}

async function measure(
  url: string,
  request: CardRequest,
  { quiet, part }: { quiet: boolean; part: [number, number] },
): Promise<import("../../card/parts.js").CardItems | undefined> {
  const [{ measureItems }, { targetOf, judgedLines }, { ServingModel }, { ProgressLine }, { readInput }] =
    await Promise.all([
      import("../../card/run.js"),
      import("../../card/target.js"),
      import("../../client/index.js"),
      import("../../terminal/index.js"),
      import("../input-files.js"),
    ]);
  const { target } = request;
  const serving = new ServingModel(url, { timeoutMs: 600_000 });
  const judged =
    target !== null && "judged" in target ? judgedLines(await readInput(target.judged), target.judged) : [];
  const progress = quiet ? undefined : new ProgressLine(process.stderr);
  const signal = stoppable();
  const measuring = {
    measure: target === null ? undefined : targetOf(serving, target, judged),
    signal,
    onProgress: (what: string, share: number) =>
      progress?.show(`${Math.round(100 * share)} %  ${what}`, what),
  };
  try {
    return await measureItems(serving, request, measuring, part);
  } catch (error) {
    progress?.clear();
    if (!signal.aborted) throw error;
    endBy(signal.reason);
    return undefined;
  } finally {
    progress?.clear();
  }
}

function targetIn({ probe, contains, classify, judged }: CardCommandOptions): CardTarget | null {
  const given = Object.entries({ probe, contains, classify, judged }).filter(
    ([, value]) => value !== undefined,
  );
  if (given.length > 1) {
    throw new UsageError(`Pass one of ${given.map(([name]) => `--${name}`).join(" and ")}.`);
  }
  const [one] = given;
  return one === undefined ? null : ({ [one[0]]: one[1] } as CardTarget);
}

function limited(texts: string[], what: "texts" | "prompts"): string[] {
  const most = cardLimits[what];
  if (texts.length >= 2 && texts.length <= most) return texts;
  throw new UsageError(`--${what}: 2 to ${most} are possible, got ${texts.length}.`);
}
