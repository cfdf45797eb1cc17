import Type from "typebox";
import { TaplineError } from "../client/index.js";

/** A field of tools that keep something under a name. */
export const replace = Type.Optional(
  Type.Boolean({
    default: false,
    description: "Required to replace an existing one with this name.",
  }),
);

/** @throws TaplineError where something has the name already and is not to be replaced */
export async function unlessKept(
  kind: "vector" | "probe" | "dictionary" | "lens",
  name: string,
  replaced: boolean | undefined,
  list: () => Promise<ReadonlyArray<{ name: string }>>,
): Promise<void> {
  if (replaced === true) return;
  if ((await list()).some((kept) => kept.name === name)) {
    throw new TaplineError(
      `A ${kind} named ${name} exists already; choose another name, or pass replace: true to replace it.`,
    );
  }
}
