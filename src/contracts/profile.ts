import Type, { type Static } from "typebox";
import { LiveRequest, Name } from "./live.js";
import { orNull } from "./optional.js";

const strict = { additionalProperties: false } as const;
const { interventions, watch, stop_when } = LiveRequest.properties;

/** Longest description of a profile, in characters. */
export const profileDescription = 2000;

/** The edits and readings of a profile. Pairs belong to a request. */
export const ProfileSettings = Type.Object(
  { interventions, watch, stop_when },
  { ...strict, title: "ProfileSettings" },
);
export type ProfileSettings = Static<typeof ProfileSettings>;

const description = Type.String({ maxLength: profileDescription });

/** The body of `PUT /lab/profiles/{name}`. */
export const ProfileRequest = Type.Object(
  { description: Type.Optional(description), tapline: ProfileSettings },
  { ...strict, title: "ProfileRequest" },
);
export type ProfileRequest = Static<typeof ProfileRequest>;

/** A saved item that a profile names, as it was when the profile was saved. */
export const ProfileUse = Type.Object(
  { kind: Type.Enum(["vector", "probe", "dictionary", "lens"]), name: Name, sha256: Type.String() },
  { title: "ProfileUse" },
);
export type ProfileUse = Static<typeof ProfileUse>;

export const StoredProfile = Type.Object(
  {
    name: Name,
    description,
    tapline: ProfileSettings,
    model: orNull(Type.Object({ id: Type.String(), fingerprint: Type.String() }), {
      description: "The model that it was saved for; null for any model.",
    }),
    uses: Type.Array(ProfileUse, {
      description: "The vectors, probes, dictionaries and lenses that it names.",
    }),
    changed: Type.Array(Type.String(), {
      description:
        "What differs from when the profile was saved, in sentences; such a profile is not served.",
    }),
    created: Type.Number(),
  },
  { title: "StoredProfile" },
);
export type StoredProfile = Static<typeof StoredProfile>;
