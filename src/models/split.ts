/** The files of one model: one, or the parts of a split set in order. */
export interface GgufSet {
  files: string[];
  /** Number of parts according to the file names. */
  parts: number;
}

// llama.cpp names the parts of a split model <stem>-00001-of-00003.gguf.
const partName = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;

/** Groups `.gguf` file names into models and ignores other names. Sorted by name. */
export function groupGgufFiles(names: readonly string[]): GgufSet[] {
  const sets = new Map<string, GgufSet>();
  for (const name of [...names].sort()) {
    if (!name.toLowerCase().endsWith(".gguf")) continue;
    const part = partName.exec(name);
    const key = part === null ? name : `${part[1]}-of-${part[3]}`;
    const set = sets.get(key) ?? { files: [], parts: part === null ? 1 : Number(part[3]) };
    set.files.push(name);
    sets.set(key, set);
  }
  return [...sets.values()];
}

/** Most missing parts listed by name. */
const named = 3;

/** The missing parts of a set, for an error message; empty if it is complete. */
export function missingParts(set: GgufSet): string {
  const part = partName.exec(set.files[0] as string);
  if (part === null) return "";
  const total = part[3] as string;
  const here = new Set(set.files);
  const missing = Array.from(
    { length: Number(total) },
    (_, index) => `${part[1]}-${String(index + 1).padStart(5, "0")}-of-${total}.gguf`,
  ).filter((name) => !here.has(name));
  const rest = missing.length - named;
  return missing.slice(0, named).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
