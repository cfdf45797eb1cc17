/** Trains and measures the transcoders of SmolLM2-135M: `npm run real:transcoders [-- --texts 3000]`. */
import { parseArgs } from "node:util";
import { fullTexts, smolLm2Transcoders } from "./transcoders.js";

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { texts: { type: "string", default: String(fullTexts) } } });
  const texts = Number(values.texts);
  if (!Number.isInteger(texts) || texts < 100) {
    throw new Error(`--texts: an integer from 100, got ${values.texts}.`);
  }
  const started = performance.now();
  const log = (line: string) =>
    console.log(`${((performance.now() - started) / 60_000).toFixed(1).padStart(6)} min  ${line}`);
  const { folder, fidelity } = await smolLm2Transcoders({ texts, log });
  const share = (value: number | null) => (value === null ? "-" : value.toFixed(3));
  console.log("block  explained  (features)  active  loss recovered");
  for (const { layer, explained_variance, features: found } of fidelity) {
    const cells = [
      share(explained_variance),
      share(found.explained_variance),
      found.l0.toFixed(1),
      share(found.loss_recovered),
    ];
    console.log(`${String(layer).padStart(5)}  ${cells.map((cell) => cell.padStart(9)).join("  ")}`);
  }
  console.log(folder);
}

main().catch((error) => {
  console.error((error as Error).message);
  process.exitCode = 1;
});
