import { modelFields, placeFields, type Result } from "../operations/contracts.js";
import { publicName } from "../text/words.js";

/** A configuration without local folders. */
export function publicConfig(config: object): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...config };
  for (const field of [...modelFields, ...placeFields]) {
    const value = shown[field];
    if (typeof value === "string") shown[field] = publicName(value);
  }
  return shown;
}

/** A result without local folders. */
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
