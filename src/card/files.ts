import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Card } from "../contracts/card.js";
import { cardPage } from "./page.js";

/** Writes card.json and card.html. @returns the page's path */
export async function writeCard(folder: string, card: Card): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "card.json"), `${JSON.stringify(card, null, 2)}\n`);
  const page = join(folder, "card.html");
  await writeFile(page, cardPage(card));
  return page;
}
