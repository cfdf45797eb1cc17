import type { Result } from "./results.js";

/**
 * Fields of a Lab request that name models, and files or folders of the machine it was made on, or hosts that it may ask. What is
 * passed on (reports, study packages) has their last part only.
 */
export const modelFields = ["model", "other", "verbaliser"] as const;
export const placeFields = ["data", "from", "out", "labels"] as const;

/** A model, file or folder as others may read it: where it lies on its machine stays there. Ids of a hub are no places. */
export function publicName(name: string): string {
  if (!/^(?:[/\\~.]|[A-Za-z]:[/\\])/.test(name)) return name;
  return name.split(/[/\\]/).findLast((part) => part !== "") ?? "a model";
}

/** A configuration without the folders of its machine. */
export function publicConfig(config: object): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...config };
  for (const field of [...modelFields, ...placeFields]) {
    const value = shown[field];
    if (typeof value === "string") shown[field] = publicName(value);
  }
  return shown;
}

/** A result without the folders of its machine. */
export function publicResult<R extends Result>(result: R): R {
  const { provenance } = result;
  const { requested_model: model, resolved_model: resolved } = provenance;
  const folder = "folder" in result && result.folder !== null ? { folder: publicName(result.folder) } : {};
  return {
    ...result,
    ...folder,
    provenance: {
      ...provenance,
      requested_model: publicName(model),
      resolved_model: { ...resolved, path: publicName(resolved.path) },
    },
  };
}
