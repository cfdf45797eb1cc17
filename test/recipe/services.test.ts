/** What a recipe's run makes and takes before its steps: forms of the model, names in a service's library. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Transport } from "../../src/client/transport.js";
import type { Recipe, RecipeModel } from "../../src/contracts/recipe.js";
import { Claims } from "../../src/recipe/claims.js";
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

test.run();
