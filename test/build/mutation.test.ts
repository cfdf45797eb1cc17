import { test } from "uvu";
import * as assert from "uvu/assert";
import { apply, mutantsOf } from "../mutation/mutants.js";

const source = `import { a } from "b"; // 1 < 2
export interface C {
  on: true;
}
export function f(n: number): boolean {
  if (n > 2 && ok("x === y")) throw new Error("1 + 1");
  this.#count += 7;
  await close(n);
  return n < 10_000;
}
`;

test("each fault changes the program, not its words, comments or types", () => {
  const lines = source.split("\n");
  const changed = mutantsOf(source).map((mutant) => {
    const after = apply(source, mutant).split("\n");
    const places = lines.flatMap((line, index) => (line === after[index] ? [] : [index]));
    assert.is(places.length, 1);
    return after[places[0] as number]?.trim();
  });
  assert.equal(
    changed.sort(),
    [
      "",
      "",
      `if ((!(n > 2 && ok("x === y")))) throw new Error("1 + 1");`
        .replace("if ((!(", "if (!(")
        .replace(")))) ", "))) "),
      `if (n > (2 + 1) && ok("x === y")) throw new Error("1 + 1");`,
      `if (n > 2 && ok("x === y")) ;`,
      `if (n > 2 || ok("x === y")) throw new Error("1 + 1");`,
      `if (n >= 2 && ok("x === y")) throw new Error("1 + 1");`,
      "return n < (10_000 + 1);",
      "return n <= 10_000;",
      "this.#count += (7 + 1);",
      "this.#count -= 7;",
    ].sort(),
  );
});

test.run();
