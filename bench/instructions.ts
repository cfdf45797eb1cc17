/** The instruction sets that have their own kernels, the best first, by ggml's names of features. */
export const instructionSets = [
  { name: "AMX", slug: "amx", features: ["AVX512", "AVX512_VNNI", "AMX_INT8"] },
  { name: "AVX-512 with VNNI", slug: "avx512-vnni", features: ["AVX512", "AVX512_VNNI"] },
  { name: "AVX-512", slug: "avx512", features: ["AVX512"] },
  { name: "AVX2 with VNNI", slug: "avx2-vnni", features: ["AVX2", "AVX_VNNI"] },
  { name: "AVX2", slug: "avx2", features: ["AVX2"] },
  { name: "NEON", slug: "neon", features: ["NEON"] },
] as const;

export interface InstructionSet {
  name: string;
  /** The name in a file's name. */
  slug: string;
}

/**
 * The instruction set of the processor's kernels.
 * @param systemInfo ggml's list, such as "CPU : AVX2 = 1 | FMA = 1"
 */
export function instructionSet(systemInfo: string): InstructionSet {
  const found = new Set([...systemInfo.matchAll(/\b(\w+) = 1/g)].map(([, name]) => name));
  const best = instructionSets.find(({ features }) => features.every((feature) => found.has(feature)));
  return best ?? { name: "no vector instructions with their own kernels", slug: "portable" };
}

/** Suites that compute on the processor: their goals were recorded with AVX-512 and VNNI. */
const suitesWithGoals = new Set("capture extract forward live peers serve".split(" "));
const goalsSet: InstructionSet = instructionSets[1];

export interface Measured {
  suite: string;
  /** `cpu`, or a GPU's, where the processor's instructions hardly matter. */
  backend: string;
  here: InstructionSet;
}

/** The instruction set that a suite's goals were recorded on; undefined if they do not depend on it. */
export function goalsRecordedOn({ suite, backend }: Measured): InstructionSet | undefined {
  return backend === "cpu" && suitesWithGoals.has(suite) ? goalsSet : undefined;
}

/** A sentence if a suite's goals were recorded on another instruction set than it was measured on. */
export function goalsElsewhere(measured: Measured): string | undefined {
  const recorded = goalsRecordedOn(measured);
  const { suite, here } = measured;
  if (recorded === undefined || recorded.slug === here.slug) return undefined;
  return (
    `The goals of ${suite} were recorded on a processor with ${recorded.name}, and this one has ${here.name}: ` +
    "meeting or missing them here says nothing about a change."
  );
}

/** The results' file: figures of another instruction set do not replace those that the goals were recorded with. */
export function resultName(measured: Measured): string {
  const { suite, backend, here } = measured;
  const suffix = goalsElsewhere(measured) === undefined ? "" : `-${here.slug}`;
  return `${suite}-${backend}${suffix}.json`;
}
