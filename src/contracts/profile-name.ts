/** Separates a model's name from a profile's in a request's `model`. */
export const profileMark = "@";

/** The name of a model with a profile, MODEL@NAME. */
export function profileId(model: string, profile: string): string {
  return `${model}${profileMark}${profile}`;
}
