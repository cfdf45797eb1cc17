import type { Context } from "koa";
import type { LiveRequest } from "../contracts/live.js";
import { liveLimits } from "../contracts/live-limits.js";
import type { ProfileSettings, StoredProfile } from "../contracts/profile.js";
import { profileMark } from "../contracts/profile-name.js";
import { UserError } from "../contracts/user-error.js";
import { HttpError, localAccessFault } from "../http/index.js";
import { type AnswerForm, ChangedForm, type ChatAnswer } from "./forms/form.js";
import { isServed, notServed } from "./served-model.js";
import type { InferenceService } from "./service.js";

/** The profile of a request whose `model` is MODEL@NAME. */
export interface ChosenProfile {
  /** MODEL@NAME, as in the request. */
  id: string;
  profile: StoredProfile;
  /** Whether the client may see readings and effects: a program on this machine. */
  open: boolean;
}

/** The profile of a request, if it has one. */
export function chosenProfile(ctx: Context): ChosenProfile | undefined {
  return ctx.state.profile as ChosenProfile | undefined;
}

/**
 * The profile that a model's name ends with. Programs on this machine may use every profile, other clients only those
 * that the server offers; for them, others do not exist.
 * @param name the model of a request, which is not the served one's
 * @throws HttpError 404 if the model is not served or has no such profile; 409 if the profile does not fit it or has changed
 */
export async function findProfile(
  service: InferenceService,
  ctx: Context,
  name: string,
): Promise<ChosenProfile> {
  const { library, offered } = service;
  const mark = name.lastIndexOf(profileMark);
  if (mark < 0 || !isServed(service, name.slice(0, mark))) throw notServed(service, name);
  const profile = name.slice(mark + 1);
  const open = localAccessFault(ctx.req) === null;
  const visible = (await library.profiles.names()).filter((one) => open || offered.includes(one));
  if (!visible.includes(profile)) {
    const there = visible.length === 0 ? "there are none" : `there are ${visible.slice(0, 20).join(", ")}`;
    throw new HttpError(404, `${name.slice(0, mark)} has no profile ${profile.slice(0, 64)}; ${there}.`, {
      param: "model",
      code: "model_not_found",
    });
  }
  try {
    return { id: name, profile: await library.profiles.fitting(profile, library.model), open };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    // Names and hashes are for programs on this machine.
    const sentence = open ? error.message : `The profile ${profile} cannot be served at the moment.`;
    throw new HttpError(409, sentence, { param: "model", code: "profile_not_served" });
  }
}

/** Profiles that a list of models shows: all that fit for programs on this machine, otherwise the offered ones. */
export async function listedProfiles(
  { library, offered }: InferenceService,
  ctx: Context,
): Promise<StoredProfile[]> {
  const fitting = await library.profiles.allFor(library.model);
  // Routers pass their backends' lists on to any client.
  const open = localAccessFault(ctx.req) === null && ctx.get("X-Tapline-Route") === "";
  return fitting.filter(({ name }) => open || offered.includes(name));
}

/**
 * A request's edits and readings together with its profile's: the profile's interventions come first; watch and
 * stop_when may be in one of the two. Clients that may not see inside the model get the profile's edits and its
 * stop_when without its readings.
 * @throws HttpError 400 if both have watch or stop_when, or there are too many interventions
 */
export function withProfile(
  chosen: ChosenProfile | undefined,
  own: LiveRequest | undefined,
): LiveRequest | undefined {
  if (chosen === undefined) return own;
  const { watch, ...acts } = chosen.profile.tapline;
  const settings: ProfileSettings = { ...acts, ...(chosen.open && watch && { watch }) };
  if (own === undefined) return settings;
  for (const field of ["watch", "stop_when"] as const) {
    if (settings[field] !== undefined && own[field] !== undefined) {
      throw new HttpError(400, `tapline.${field}: the profile ${chosen.profile.name} has its own.`, {
        param: `tapline.${field}`,
      });
    }
  }
  const interventions = [...(settings.interventions ?? []), ...(own.interventions ?? [])];
  const most = liveLimits.interventions;
  if (interventions.length > most) {
    throw new HttpError(
      400,
      `tapline.interventions: at most ${most} together with those of the profile ${chosen.profile.name}, got ${interventions.length}.`,
      { param: "tapline.interventions" },
    );
  }
  return { ...settings, ...own, ...(interventions.length > 0 && { interventions }) };
}

class Unchanged extends ChangedForm {
  whole(answer: ChatAnswer): object {
    return answer;
  }
}

/** Answers under a profile's name; without readings and effects for clients that may not see them. */
export class ProfileForm implements AnswerForm {
  readonly single?: true;
  readonly #inner: AnswerForm;

  constructor(
    private readonly chosen: ChosenProfile,
    inner: AnswerForm | undefined,
  ) {
    this.#inner = inner ?? new Unchanged();
    if (inner?.single) this.single = true;
  }

  whole(answer: ChatAnswer): object {
    return this.#inner.whole(this.#named(answer));
  }

  event(answer: ChatAnswer): string {
    return this.#inner.event(this.#named(answer));
  }

  end(): string {
    return this.#inner.end();
  }

  fault(sentence: string): string {
    return this.#inner.fault(sentence);
  }

  #named(answer: ChatAnswer): ChatAnswer {
    const { id, open } = this.chosen;
    const choices = answer.choices?.map((choice) => {
      if (open) return choice;
      const { tapline: _, ...rest } = choice;
      return rest;
    });
    return { ...answer, model: id, ...(choices && { choices }) };
  }
}
