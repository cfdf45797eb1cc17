import type { ComponentChildren } from "preact";
import { chatSettings as settings } from "../chat-settings.js";
import { follow } from "../router.js";
import { known } from "../store.js";
import type { Library } from "./edits.js";
import { Area, Choice, NumberField } from "./fields.js";
import { useDraft } from "./form.js";

/** A link to the chat that first changes its settings. */
export function ChatLink(link: { href?: string; prepare: () => void; children: ComponentChildren }) {
  const { href = "/chat", prepare, children } = link;
  return (
    <a
      class="button"
      href={href}
      onClick={(event) => {
        prepare();
        follow(event);
      }}
    >
      {children}
    </a>
  );
}

/** Sampling settings of the next answers, and the probe and dictionary that read their tokens. */
export function ChatSettings({ library }: { library: Library | undefined }) {
  const { bind } = useDraft(settings);
  const { probes = [], dictionaries = [] } = library ?? {};
  return (
    <section class="card" aria-label="Settings">
      <h2>Settings</h2>
      <p class="row">
        <NumberField label="Temperature" min={0} max={5} step={0.1} {...bind("temperature")} />
        <NumberField label="Max tokens" min={1} max={4096} {...bind("tokens")} />
        <Choice label="Thinking" options={[["", "server default"], "on", "off"]} {...bind("thinking")} />
        {probes.length > 0 && (
          <Choice
            label="Probe"
            options={[["", "none"], ...probes.map(({ name }) => name)]}
            {...bind("watch")}
          />
        )}
        {dictionaries.length > 0 && (
          <Choice
            label="Features"
            options={[
              ["", "none"],
              ...dictionaries.map(({ name, layer }) => [name, `${name}, layer ${layer}`] as const),
            ]}
            {...bind("dictionary")}
          />
        )}
      </p>
      {known.state?.server.chat_template !== false && (
        <Area label="System prompt" rows={2} placeholder="none" {...bind("system")} />
      )}
    </section>
  );
}
