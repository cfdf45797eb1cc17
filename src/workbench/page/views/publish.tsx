import { useEffect, useState } from "preact/hooks";
import type { StudiesService } from "../../wire.js";
import { savedWords } from "../draft.js";
import { call, post } from "../session.js";
import { Form, useFields, useTrying } from "./form.js";

/** Saves the study as a private draft at a studies service, where a person reviews and publishes it. */
export function PublishCard({ jobs }: { jobs: readonly string[] }) {
  const [service, setService] = useState<StudiesService>();
  const [saved, setSaved] = useState<{ id: string; review_url: string }>();
  const { fields, bind } = useFields(() => ({ url: "", token: "" }));
  const [saving, setSaving] = useState(false);
  const { problem, trying } = useTrying();
  useEffect(() => {
    void call<StudiesService>("/api/studies/service").then(setService, () => {});
  }, []);
  const isSet = service?.url != null;
  const publish = async () => {
    setSaving(true);
    await trying(async () => {
      setSaved(undefined);
      const other = isSet ? {} : { service: { url: fields.url.trim(), token: fields.token.trim() } };
      setSaved(await post("/api/studies/drafts", { jobs, words: savedWords(), ...other }));
    });
    setSaving(false);
  };
  return (
    <section class="study" aria-label="Publish">
      <h2>Publish</h2>
      <Form onSubmit={publish} problem={problem}>
        <p>
          Saves a private draft at {isSet ? <bdi>{service.url}</bdi> : "a studies service"}. Nothing is public
          until you review and publish it there.
        </p>
        {service !== undefined && !isSet && (
          <div class="twins">
            <label class="field">
              Address <span class="soft">https, without a path</span>
              <input
                class="whole"
                placeholder="https://studies.example.org"
                value={fields.url}
                onInput={(event) => bind("url").onChange(event.currentTarget.value)}
              />
            </label>
            <label class="field">
              Token <span class="soft">from the website's Agent access page; not stored</span>
              <input
                class="whole"
                type="password"
                autocomplete="off"
                value={fields.token}
                onInput={(event) => bind("token").onChange(event.currentTarget.value)}
              />
            </label>
          </div>
        )}
        <button
          type="submit"
          class="main"
          disabled={saving || service === undefined || (!isSet && (fields.url === "" || fields.token === ""))}
        >
          {saving ? "Saving…" : "Save as private draft"}
        </button>
        {saved !== undefined && (
          <p role="status">
            Saved as draft <code>{saved.id}</code>. <ReviewLink address={saved.review_url} />
          </p>
        )}
      </Form>
    </section>
  );
}

/** The service's own address; anything but https is shown as text. */
function ReviewLink({ address }: { address: string }) {
  if (!URL.canParse(address) || new URL(address).protocol !== "https:") return <bdi>{address}</bdi>;
  return (
    <a href={address} target="_blank" rel="noreferrer noopener">
      Review and publish it
    </a>
  );
}
