import type { Card } from "../contracts/card.js";
import { UsageError } from "./exit-code.js";

/** A card that was read from a file. @throws UsageError if it is not as it was written */
export async function intactCard(read: unknown, file: string): Promise<Card> {
  const [{ validate }, { Card: Schema }, { isIntact }] = await Promise.all([
    import("../contracts/validate.js"),
    import("../contracts/card.js"),
    import("../card/signed.js"),
  ]);
  const card = validate(Schema, read) as Card;
  if (!isIntact(card)) throw new UsageError(`${file} was changed after it was written: its sha256 differs.`);
  return card;
}
