/** Texts that were drawn once and read: a file of parts, each below its name. Read them again after an intended change. */
import { readFileSync } from "node:fs";

/** The recorded texts of a file by name, in their order. */
export function recordedTexts(file: URL): Map<string, string> {
  return new Map(
    readFileSync(file, "utf8")
      .replace(/\n$/, "")
      .split(/^##### /m)
      .slice(1)
      .map((part): [string, string] => {
        const [name = "", ...lines] = part.replace(/\n$/, "").split("\n");
        return [name, lines.join("\n")];
      }),
  );
}
