/**
 * Checks tapline on a real trained model against the tools that people use: `npm run verify:real`.
 *   --only PATTERN  checks whose name matches
 *   --small         fewer prompts and one peer: what .ci/run has time for
 *   --write         stores the figures for docs/contributing/verification/tables.md
 * The models and the tools' environments are prepared in the cache on first use (test/support/real).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Gemma3, gemma3Model, miniLmModel, type SmolLm2, smolLm2Model } from "../support/real/models.js";
import { holds, printFigure } from "./figures.js";
import type { Figure } from "./numerics/check.js";
import { against, type Bounds, peers } from "./real/against.js";
import { attributionPatching } from "./real/attribution.js";
import { directions } from "./real/directions.js";
import { encoder } from "./real/encoder.js";
import { nf4 } from "./real/nf4.js";
import { computeOurs, gemmaSmall, gemmaWhole, type Ours, small, whole } from "./real/ours.js";
import { quantised } from "./real/quantised.js";
import { saelens } from "./real/saelens.js";
import { type Checked, writeTables } from "./real/tables.js";

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: "" },
      small: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
    },
  });
  const models = { smolLm2: await smolLm2Model(), gemma: await gemma3Model() };
  const folder = await mkdtemp(join(tmpdir(), "tapline-real-"));
  try {
    const all = checks(models, folder, values.small).filter(({ name }) => new RegExp(values.only).test(name));
    const checked: Checked[] = [];
    for (const { name, run } of all) {
      const begin = performance.now();
      console.log(name);
      const figures = await run().catch((error: Error): Figure[] => {
        console.log(`  FAILED ${error.stack}`);
        return [];
      });
      figures.forEach(printFigure);
      console.log(`  ${((performance.now() - begin) / 1000).toFixed(1)} s`);
      checked.push({ name, figures });
    }
    const good = checked.flatMap(({ figures }) => figures.filter(holds)).length;
    const bad = checked.reduce(
      (sum, { figures }) => sum + (figures.length === 0 ? 1 : figures.filter((each) => !holds(each)).length),
      0,
    );
    if (values.write) await writeTables(checked);
    console.log(`\n${good} figures hold, ${bad} failed.`);
    return good > 0 && bad === 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface RealCheck {
  name: string;
  run(): Promise<Figure[]>;
}

const smolLm2Bounds: Bounds = { distance: 1e-4, token: 1e-3, probability: 1e-3 };
/** GELU read from ggml's table in half precision would miss them 20 to 200 times over. */
const gemmaBounds: Bounds = { distance: 1e-5, token: 5e-5, probability: 1e-4 };

function checks(models: { smolLm2: SmolLm2; gemma: Gemma3 }, folder: string, quick: boolean): RealCheck[] {
  const { smolLm2, gemma } = models;
  let ours: Promise<Ours> | undefined;
  const computed = () => (ours ??= computeOurs(smolLm2.f32, quick ? small : whole, folder));
  return [
    ...(quick ? peers.slice(0, 1) : peers).map((peer) => ({
      name: peer,
      run: async () =>
        against(peer, await computed(), { folder: smolLm2.folder, bounds: smolLm2Bounds, chats: true }),
    })),
    {
      name: "gemma",
      run: async () =>
        against("transformers", await computeOurs(gemma.f32, quick ? gemmaSmall : gemmaWhole, folder), {
          ...{ folder: gemma.folder, bounds: gemmaBounds, chats: false },
        }),
    },
    ...(quick
      ? []
      : [
          { name: "directions", run: () => directions(smolLm2, folder) },
          { name: "saelens", run: () => saelens(folder) },
          { name: "nf4", run: () => nf4(smolLm2, folder) },
        ]),
    { name: "quantised", run: () => quantised(smolLm2, quick ? small : whole) },
    {
      name: "attribution-smollm2",
      run: () => attributionPatching(smolLm2.f32, "SmolLM2-135M in F32", quick ? 6 : 100, 0.85),
    },
    {
      name: "attribution-gemma",
      run: () => attributionPatching(gemma.f32, "Gemma 3 270M in F32", quick ? 6 : 100, 0.9),
    },
    { name: "encoder", run: async () => encoder(await miniLmModel()) },
  ];
}

main().then(
  (good) => {
    process.exitCode = good ? 0 : 1;
  },
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
