import { useState } from "preact/hooks";
import type { LiveIntervention } from "../../../contracts/live.js";
import type { StoredProfile } from "../../../contracts/profile.js";
import { count } from "../../../findings/numbers.js";
import { serverRequest } from "../jobs.js";
import { post } from "../session.js";
import { Choice, Field } from "./fields.js";
import { Form, useDraft, useTrying } from "./form.js";
import { LibraryTools } from "./library-tools.js";
import { RequestCode } from "./request-code.js";

interface ProfilesProps {
  profiles: readonly StoredProfile[];
  /** Empty for none. */
  chosen: string;
  /** What would be saved. */
  interventions: readonly LiveIntervention[];
  onChoose: (name: string) => void;
}

/** The form, kept while other views are open. */
const draft = { name: "", description: "" };

/** Chooses the profile that answers run with, and saves the interventions as a new one. */
export function Profiles({ profiles, chosen, interventions, onChoose }: ProfilesProps) {
  const [saved, setSaved] = useState<string>();
  const { set, bind } = useDraft(draft);
  const { problem, trying } = useTrying();
  const profile = profiles.find(({ name }) => name === chosen);
  const body = () => ({
    ...(draft.description.trim() !== "" && { description: draft.description.trim() }),
    tapline: { interventions },
  });
  const name = draft.name.trim();
  const save = () =>
    trying(async () => {
      await post("/api/profiles", { name, ...body() });
      setSaved(name);
      set({ name: "", description: "" });
    });
  const isMissing = chosen !== "" && profile === undefined;
  return (
    <section aria-label="Profiles">
      {(profiles.length > 0 || isMissing) && (
        <div class="row">
          <Choice
            label="Profile"
            value={chosen}
            options={[
              ["", "none"],
              ...(isMissing ? [[chosen, `${chosen} (not for this model)`] as const] : []),
              ...profiles.map(({ name }) => name),
            ]}
            onChange={onChoose}
          />
          {profile !== undefined && (
            <LibraryTools kind="profiles" name={profile.name} onChange={(name) => onChoose(name ?? "")} />
          )}
        </div>
      )}
      {profile !== undefined && (
        <p class="soft">
          {profile.description !== "" && (
            <>
              <bdi>{profile.description}</bdi>{" "}
            </>
          )}
          {contentsOf(profile)} The sliders are applied in addition.
        </p>
      )}
      {interventions.length > 0 && (
        <details>
          <summary>Save as a profile</summary>
          <Form class="stacked" onSubmit={save} problem={problem}>
            <Field label="Name" placeholder="polite" {...bind("name")} />
            <Field label="Description" placeholder="optional" {...bind("description")} />
            <button type="submit" disabled={name === ""}>
              {profiles.some((one) => one.name === name) ? "Replace profile" : "Save profile"}
            </button>
          </Form>
          <RequestCode
            of="save profile"
            request={() => serverRequest(`/lab/profiles/${encodeURIComponent(name || "NAME")}`, body())}
          />
        </details>
      )}
      <p class="soft" role="status">
        {saved !== undefined && `Saved as ${saved}.`}
      </p>
    </section>
  );
}

function contentsOf({ tapline: { interventions = [], watch, stop_when } }: StoredProfile): string {
  const parts = [
    ...(interventions.length === 0 ? [] : [count(interventions.length, "intervention")]),
    ...(watch === undefined ? [] : ["its own readings, so tokens have none here"]),
    ...(stop_when === undefined ? [] : ["a condition that ends the answer"]),
  ];
  return `It has ${parts.join(", ")}.`;
}
