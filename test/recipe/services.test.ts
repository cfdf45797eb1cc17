/** Preparations of a recipe's run: forms of the model, names in a service's library. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Transport } from "../../src/client/transport.js";
import type { Recipe, RecipeModel } from "../../src/contracts/recipe.js";
import { Claims } from "../../src/recipe/claims.js";
import { openRecipeLab } from "../../src/recipe/lab-steps.js";
import { makeVariants } from "../../src/recipe/made-variants.js";
import { Refused, standIn } from "../cli/stand-in.js";

test("of a recipe's forms only the used and unnamed ones are made", async () => {
  const stages: string[] = [];
  const { signal } = new AbortController();
  const recipe = { steps: [{ variant: "named" }] } as unknown as Recipe;
  for (const model of [
    { id: "/no/model.gguf", quantised: { named: "Q8_0" }, variants: { named: { id: "/mine.gguf" } } },
    { id: "/no/model.gguf", quantised: { other: "Q8_0" } },
    { id: "/no/model.gguf" },
  ] as unknown as RecipeModel[]) {
    const made = await makeVariants(recipe, model, signal, (stage) => void stages.push(stage));
    assert.is(made.model, model);
    await made.remove();
  }
  assert.equal(stages, []);
});

test("a name in use is refused; borrowed names are restored after failures", async () => {
  const service = await standIn();
  try {
    const claims = new Claims(new Transport(service.url, 5000), "wait");
    service.answers = {
      "GET /lab/probes/there": { name: "there" },
      "GET /lab/vectors/ill": new Refused(500, "Not well."),
      "DELETE /lab/dictionaries/b": { deleted: true },
    };
    await claims.claim("/lab/vectors", "a/b");
    await claims.claim("/lab/dictionaries", "b");
    const refused = (shelf: "/lab/probes" | "/lab/vectors", name: string) =>
      claims.claim(shelf, name).catch((error: Error) => error.message);
    assert.is(
      await refused("/lab/probes", "there"),
      "The server already has a probe there, which the recipe would overwrite. Remove it with tapline probe rm there, or wait.",
    );
    assert.is(await refused("/lab/vectors", "ill"), "Not well.");
    const before = service.asked().length;
    await claims.release();
    await claims.release();
    assert.equal(service.asked().slice(before), [
      ["DELETE /lab/vectors/a%2Fb"],
      ["DELETE /lab/dictionaries/b"],
    ]);
  } finally {
    await service.close();
  }
});

test("given dictionaries are added under the recipe's names, and removed at the end", async () => {
  const service = await standIn();
  const folder = mkdtempSync(join(tmpdir(), "tapline-recipe-set-"));
  try {
    for (const layer of [0, 12]) {
      mkdirSync(join(folder, `layer-${layer}`));
      writeFileSync(join(folder, `layer-${layer}`, `sae-layer-${layer}.safetensors`), "");
    }
    const http = new Transport(service.url, 5000);
    const recipe = {
      dictionaries: { set: { what: "A set from somewhere." }, one: { what: "One.", from: "owner/name/one" } },
      steps: [],
    } as unknown as Recipe;
    const model = { id: "demo", tested: true };
    const open = async () => ({ http, close: async () => {} }) as never;
    const options = { model, signal: new AbortController().signal, onStage: () => {} };
    const refused = (dictionaries: Record<string, string>) =>
      openRecipeLab(open, recipe, { ...options, dictionaries }).then(
        () => "opened",
        (error: Error) => error.message,
      );
    assert.is(await refused({}), "The recipe needs set: use --dictionary set=FOLDER. A set from somewhere.");
    assert.is(
      await refused({ sets: folder }),
      "The recipe has no dictionary sets that could be given; it has set, one.",
    );
    const path = join(folder, "layer-0", "sae-layer-0.safetensors");
    const names = ["set-0", "set-12", "one"];
    service.answers = Object.fromEntries(
      names.flatMap((name) => [
        [`PUT /lab/dictionaries/${name}`, { name }],
        [`DELETE /lab/dictionaries/${name}`, { deleted: true }],
      ]),
    );
    const lab = await openRecipeLab(open, recipe, { ...options, dictionaries: { set: folder } });
    const asked = service.asked().filter(([what]) => what?.startsWith("PUT"));
    assert.equal(
      asked.map(([what]) => what),
      names.map((name) => `PUT /lab/dictionaries/${name}`),
    );
    assert.equal(
      asked.map(([, body]) => body),
      [{ from: path }, { from: path.replaceAll("layer-0", "layer-12") }, { from: "owner/name/one" }],
    );
    await lab.close();
    assert.equal(
      service.asked().slice(-3),
      names.map((name) => [`DELETE /lab/dictionaries/${name}`]),
    );
  } finally {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
