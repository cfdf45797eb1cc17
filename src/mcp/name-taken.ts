import Type from "typebox";
import { TaplineError } from "../client/index.js";

/** A field of tools that save something under a name. */
export const replace = Type.Optional(
  Type.Boolean({
    default: false,
    description: "Required to replace an existing one with this name.",
  }),
);

/** @throws TaplineError if the name is taken and `replaced` is not true */
export async function checkNotTaken(
  kind: "vector" | "probe" | "profile" | "dictionary" | "lens",
  name: string,
  replaced: boolean | undefined,
  list: () => Promise<ReadonlyArray<{ name: string }>>,
): Promise<void> {
  if (replaced === true) return;
  if ((await list()).some((stored) => stored.name === name)) {
    throw new TaplineError(
      `A ${kind} named ${name} already exists; choose another name, or pass replace: true to replace it.`,
    );
  }
}
