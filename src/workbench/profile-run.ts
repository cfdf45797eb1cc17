import { profileId } from "../contracts/profile-name.js";
import type { Services } from "./services.js";

/** The `model` of a request that runs with a profile; nothing without one. */
export function modelWithProfile(model: string | null, profile: string | undefined): { model?: string } {
  return profile === undefined || model === null ? {} : { model: profileId(model, profile) };
}

/** Whether a profile has its own readings: a request that runs with it may then have none. @throws TaplineError */
export async function watchingProfile({ model }: Services, profile: string): Promise<boolean> {
  return (await model.profile(profile)).tapline.watch !== undefined;
}
