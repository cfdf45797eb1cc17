import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundledData } from "../../src/card/data/index.js";
import { cardPage } from "../../src/card/page.js";
import { cardOf } from "../../src/card/parts.js";
import { measureItems } from "../../src/card/run.js";
import { targetOf } from "../../src/card/target.js";
import { ServingModel } from "../../src/client/index.js";
import { serve } from "../../src/inference/process/supervisor.js";

const lines = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../docs/examples/${name}`, import.meta.url)), "utf8")
    .trim()
    .split("\n");

/** The card of docs/profiles.md, of the embedded model. @returns the address of its page in `folder` */
export async function exampleCard(folder: string): Promise<string> {
  const serving = await serve({
    ...{ model: "demo", host: "127.0.0.1", port: 0, home: join(folder, "card-home") },
    onEvent: () => {},
  });
  try {
    const client = new ServingModel(serving.url, { timeoutMs: 600_000 });
    await client.makeVector({
      ...{ name: "unknown", layers: [5] },
      ...{ positive: lines("invented-countries.txt"), negative: lines("real-countries.txt") },
    });
    const steer = { kind: "steer", vector: "unknown", strength: 0.9, strength_unit: "row_norm" } as const;
    await client.putProfile("forgetful", {
      ...{ description: "Calls known capitals unknown.", tapline: { interventions: [steer] } },
    });
    const target = { contains: "don't know" };
    const given = { prompts: lines("capital-questions.txt") };
    const items = await measureItems(
      client,
      {
        ...{
          profile: "forgetful",
          strengths: [0.25, 0.5, 0.75, 1, 1.5],
          random: 2,
          seed: 0,
          answerTokens: 48,
        },
        ...{ target, given, data: { ...bundledData, ...given } },
      },
      { measure: targetOf(client, target, []) },
    );
    const path = join(folder, "card.html");
    writeFileSync(path, cardPage(cardOf([items])));
    return pathToFileURL(path).href;
  } finally {
    await serving.close();
  }
}
