import { checkCompare } from "./check-compare.js";
import { checkPatchSweep } from "./check-patch-sweep.js";
import { defaults, limits } from "./limits.js";
import {
  type CompareConfig,
  type Config,
  type DriftConfig,
  type ExplainConfig,
  type ExtractConfig,
  type FeaturesConfig,
  type Operation,
  operations,
  type ProbeConfig,
  type SaeConfig,
  submissions,
} from "./submission.js";
import { InvalidInput, shown, validate } from "./validate.js";

/**
 * Checks everything about a submission that can be checked without its model.
 * @returns the submission with defaults filled in
 * @throws InvalidInput
 */
export function checkSubmission(body: unknown): Config {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new InvalidInput("", "The body must be a JSON object.");
  }
  const operation = (body as { operation?: unknown }).operation;
  if (operation === undefined)
    throw new InvalidInput("operation", `is required; one of ${operations.join(", ")}.`);
  if (!operations.includes(operation as Operation)) {
    throw new InvalidInput("operation", `must be one of ${operations.join(", ")}, got ${shown(operation)}.`);
  }
  const config = validate(submissions[operation as Operation], body) as Config;
  switch (config.operation) {
    case "inspect":
      if (config.target_token !== undefined && config.follow_answer === true) {
        throw new InvalidInput("follow_answer", "follows another token than target_token; give one of them.");
      }
      break;
    case "compare":
      if (config.intervention === "clamp" && (body as Partial<CompareConfig>).strengths === undefined) {
        config.strengths = [...defaults.clamp_strengths];
      }
      checkCompare(config);
      break;
    case "probe":
      checkPrompts(config.examples, config.rows);
      checkSplits(config);
      checkClasses(config);
      checkLeaks(config);
      break;
    case "sae":
      checkSae(config);
      break;
    case "features":
      if ((config.prompt === undefined) === (config.texts === undefined)) {
        throw new InvalidInput("prompt", "give either prompt or texts.");
      }
      checkLabels(config);
      break;
    case "extract":
      checkExtract(config);
      break;
    case "drift":
      checkDrift(config);
      break;
    case "patch_sweep":
      checkPatchSweep(config);
      break;
    case "explain":
      checkExplain(config);
      break;
  }
  return config;
}

function checkLabels({ pages, labels }: FeaturesConfig): void {
  if (labels === undefined) return;
  if (pages === undefined) throw new InvalidInput("labels", "are for pages; name features in pages.");
  if (!/^https?:\/\//.test(labels)) checkPath("labels", labels);
}

type Undefinable<T> = { [K in keyof T]: T[K] | undefined };

function checkSae(config: SaeConfig): void {
  const { examples, from } = config;
  if ((examples === undefined) === (from === undefined)) {
    throw new InvalidInput("examples", "give either examples or from.");
  }
  if (from !== undefined) checkPath("from", from);
  if (examples !== undefined) {
    checkPrompts(examples, config.rows);
    checkSplits({ examples });
    checkLeaks({ examples });
  }
  checkSaeSettings(config);
}

type SaeSettings = Pick<SaeConfig, "architecture" | "features" | "k" | "sparsity" | "warmup" | "decay">;

/** What of an autoencoder's settings goes together. @throws InvalidInput */
export function checkSaeSettings(settings: Undefinable<SaeSettings>): void {
  const { architecture = "relu", features = 0, k, sparsity, warmup = 0, decay = 0 } = settings;
  const keepsK = architecture === "topk" || architecture === "batchtopk";
  if (k !== undefined && !keepsK)
    throw new InvalidInput("k", `is for topk and batchtopk, not for ${architecture}.`);
  if (k !== undefined && k > features) {
    throw new InvalidInput("k", `must be at most the ${features} features, got ${k}.`);
  }
  if (sparsity !== undefined && keepsK) {
    throw new InvalidInput("sparsity", `is for relu and jumprelu; ${architecture} has k.`);
  }
  if (warmup + decay > 1) {
    throw new InvalidInput(
      "warmup",
      `and decay are shares of the steps, together at most 1; got ${warmup + decay}.`,
    );
  }
}

function checkPath(field: string, path: string): void {
  if (isAbsolute(path)) return;
  throw new InvalidInput(field, `must be a path from the root, got ${shown(path)}.`);
}

function checkExtract({ examples, data, shard, out, rows }: ExtractConfig): void {
  if ((examples === undefined) === (data === undefined)) {
    throw new InvalidInput("examples", "give either examples or data.");
  }
  if (examples !== undefined) checkPrompts(examples, rows);
  for (const [field, path] of Object.entries({ data, out })) {
    if (path !== undefined) checkPath(field, path);
  }
  const [index, count] = shard ?? [0, 1];
  if (!((index as number) < (count as number))) {
    throw new InvalidInput("shard", `is [i, n] with i from 0 to n - 1, got [${shard?.join(", ")}].`);
  }
}

/** What tells two classes apart needs both. */
function checkDrift({ examples, probe, vector }: DriftConfig): void {
  const field = probe !== undefined ? "probe" : "vector";
  if (probe === undefined && vector === undefined) return;
  const bare = examples.findIndex(({ label }) => label === undefined);
  if (bare !== -1) throw new InvalidInput(`examples[${bare}].label`, `is required beside ${field}.`);
  for (const label of [0, 1]) {
    if (examples.every((example) => example.label !== label)) {
      throw new InvalidInput("examples", `both classes must occur beside ${field}; none has label ${label}.`);
    }
  }
}

function checkExplain(config: ExplainConfig): void {
  const { template, marker, samples, temperature, verbaliser, verbaliser_revision } = config;
  const places = template.split(marker).length - 1;
  if (places !== 1) {
    throw new InvalidInput(
      "template",
      `must hold the marker ${shown(marker)} once; it does ${places} times.`,
    );
  }
  if (samples > 1 && temperature === 0) {
    throw new InvalidInput(
      "samples",
      `must be 1 at temperature 0, where all descriptions are the same, got ${samples}.`,
    );
  }
  if (verbaliser === undefined && verbaliser_revision !== undefined) {
    throw new InvalidInput("verbaliser_revision", "is of a verbaliser; name one.");
  }
}

/** Of either system's: which one the Lab runs on is not known here. */
function isAbsolute(path: string): boolean {
  return /^(?:[/\\]|[A-Za-z]:[/\\])/.test(path);
}

/** A prompt is read where its response is wanted, and nowhere else. */
function checkPrompts(examples: ReadonlyArray<{ prompt?: string }>, rows = "last"): void {
  const wanted = rows === "response";
  const odd = examples.findIndex(({ prompt }) => (prompt !== undefined) !== wanted);
  if (odd === -1) return;
  throw new InvalidInput(
    `examples[${odd}].prompt`,
    wanted ? "is required for rows response." : `is for rows response, not for ${rows}.`,
  );
}

interface Split {
  examples: ReadonlyArray<{ text: string; prompt?: string; split: "train" | "test" }>;
}

function checkSplits(config: Split): void {
  for (const split of ["train", "test"]) {
    const count = config.examples.filter((example) => example.split === split).length;
    if (count < limits.examples_per_split_min) {
      throw new InvalidInput(
        "examples",
        `at least ${limits.examples_per_split_min} with split ${split}, got ${count}.`,
      );
    }
  }
}

function checkClasses(config: ProbeConfig): void {
  for (const split of ["train", "test"]) {
    const members = config.examples.filter((example) => example.split === split);
    for (const label of [0, 1]) {
      if (!members.some((example) => example.label === label)) {
        throw new InvalidInput(
          "examples",
          `both classes must occur in each split; ${split} has no label ${label}.`,
        );
      }
    }
  }
}

/** What was trained on is not held out: a figure of such a text says how well it was learnt by heart. */
function checkLeaks({ examples }: Split): void {
  const whole = ({ prompt = "", text }: Split["examples"][number]) => JSON.stringify([prompt, text]);
  const training = new Set(examples.filter(({ split }) => split === "train").map(whole));
  const leaked = examples.findIndex((example) => example.split === "test" && training.has(whole(example)));
  if (leaked !== -1) {
    throw new InvalidInput(`examples[${leaked}].text`, "occurs in both splits; held-out texts must be new.");
  }
}
