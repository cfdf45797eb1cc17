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

/** On a card: results are written to bench/results/SUITE-cuda.json. */
export function cardSteps(card: Card, options: string): Step[] {
  // Named here, because ggml asks the machine's GPU otherwise, and fails where none answers.
  const architectures = `CMAKE_CUDA_ARCHITECTURES=${card.capability.replace(".", "")}`;
  const build = {
    TAPLINE_BACKEND: "cuda",
    TAPLINE_CMAKE_OPTIONS: `${options} ${architectures}`.trim(),
  };
  return [
    { name: "build", command: ["npm", "run", "--silent", "build:native"], env: build },
    { name: "verify", command: tapline("verify") },
    { name: "suite", command: test() },
    { name: "twin", command: test("stress/twin"), env: { TAPLINE_STRESS_TWIN: "300" } },
    ...["live", "capture", "peers"].map((suite) => ({ name: `bench ${suite}`, command: bench(suite) })),
  ];
}

/** On pretend GPUs, with the environment that makes an addon see them; writes no results. */
export function rehearsalSteps(short: boolean, pretend: Record<string, string>): Step[] {
  const twin = { ...pretend, TAPLINE_STRESS_TWIN: short ? "16" : "200" };
  const quick = ["--quick", ...(short ? ["--only", "demo"] : [])];
  return [
    ...(short ? [] : [{ name: "verify", command: tapline("verify"), env: pretend }]),
    { name: "suite", command: test(short ? "devices/pass" : "devices") },
    { name: "twin", command: test("stress/twin"), env: twin },
    { name: "bench live", command: bench("live", ...quick), env: pretend },
    ...(short
      ? []
      : [
          {
            name: "devices",
            command: ["npm", "run", "--silent", "verify:devices", "--", "--only", "^llama-"],
          },
          { name: "counts", command: test("stress/devices") },
          { name: "bench capture", command: bench("capture", "--quick"), env: pretend },
        ]),
  ];
}
