/** The steps of `npm run gpu`: commands that end within ten minutes on a card, or smaller ones on pretend GPUs. */

export interface Step {
  name: string;
  command: readonly string[];
  env?: Record<string, string>;
}

export interface Card {
  name: string;
  /** Compute capability, e.g. "9.0". */
  capability: string;
}

const test = (...parts: string[]) => ["npm", "test", "--silent", "--", ...parts];
const bench = (...parts: string[]) => ["npm", "run", "--silent", "bench", "--", ...parts];
const tapline = (...parts: string[]) => [process.execPath, "--import", "tsx", "src/cli/main.ts", ...parts];
const models = (set: "card" | "small") => [process.execPath, "--import", "tsx", "bench/models/sets.ts", set];
const devices = (...parts: string[]) => ["npm", "run", "--silent", "verify:devices", "--", ...parts];

/** On a card: results are written to bench/results/SUITE-cuda.json. */
export function cardSteps(card: Card, options: string): Step[] {
  // Named here, because ggml asks the machine's GPU otherwise, and fails where none answers.
  const architectures = `CMAKE_CUDA_ARCHITECTURES=${card.capability.replace(".", "")}`;
  const env = { TAPLINE_BACKEND: "cuda", TAPLINE_CMAKE_OPTIONS: `${options} ${architectures}`.trim() };
  const steps: Step[] = [
    { name: "build", command: ["npm", "run", "--silent", "build:native"] },
    {
      name: "programs",
      command: [process.execPath, "scripts/build/tools.js", "llama-bench", "llama-server"],
    },
    { name: "models", command: models("card") },
    { name: "verify", command: tapline("verify") },
    { name: "suite", command: test() },
    { name: "twin", command: test("stress/twin"), env: { TAPLINE_STRESS_TWIN: "300" } },
    // On pretend GPUs, which need the processor's build; of the card, the suite and `verify` speak.
    {
      name: "devices",
      command: devices("--only", "^(llama|qwen3moe|gemma3|mamba)-"),
      env: { TAPLINE_BACKEND: "cpu" },
    },
    { name: "bench live", command: bench("live", "--models", "card") },
    { name: "bench capture", command: bench("capture", "--models", "card") },
    { name: "bench extract", command: bench("extract", "--models", "card") },
    { name: "bench peers", command: bench("peers") },
  ];
  return steps.map((step) => ({ ...step, env: { ...env, ...step.env } }));
}

/** On pretend GPUs, with the environment that makes an addon see them; writes no results. */
export function rehearsalSteps(short: boolean, pretend: Record<string, string>): Step[] {
  const quick = (suite: string, ...more: string[]) => ({
    name: `bench ${suite}`,
    command: bench(suite, "--quick", ...more),
    env: pretend,
  });
  if (short) {
    return [
      { name: "suite", command: test("devices/pass") },
      { name: "twin", command: test("stress/twin"), env: { ...pretend, TAPLINE_STRESS_TWIN: "48" } },
      quick("live", "--only", "demo"),
    ];
  }
  const small = ["--models", "small"];
  return [
    {
      name: "programs",
      command: [process.execPath, "scripts/build/tools.js", "llama-bench", "llama-server"],
    },
    { name: "models", command: models("small") },
    { name: "verify", command: tapline("verify"), env: pretend },
    { name: "suite", command: test("devices") },
    { name: "twin", command: test("stress/twin"), env: { ...pretend, TAPLINE_STRESS_TWIN: "200" } },
    { name: "devices", command: devices("--only", "^llama-") },
    { name: "counts", command: test("stress/devices") },
    quick("live", ...small),
    quick("capture", ...small),
    quick("extract", ...small),
    // Both sides on the processor: the peers know no pretend GPU.
    { name: "bench peers", command: bench("peers", "--quick", "--only", "capture, 4 layers x 16") },
  ];
}
