import type { ComponentChildren } from "preact";
import { chatSettings as settings } from "../chat-settings.js";
import { follow } from "../router.js";
import type { Library } from "./edits.js";
import { Choice, NumberField } from "./fields.js";
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
  const set = useDraft(settings);
  const { probes = [], dictionaries = [] } = library ?? {};
  return (
    <section class="card" aria-label="Settings">
      <h2>Settings</h2>
      <p class="row">
        <NumberField
          label="Temperature"
          min={0}
          max={5}
          step={0.1}
          value={settings.temperature}
          onChange={(temperature) => set({ temperature })}
        />
        <NumberField
          label="Max tokens"
          min={1}
          max={4096}
          value={settings.tokens}
          onChange={(tokens) => set({ tokens })}
        />
        <Choice
          label="Thinking"
          value={settings.thinking}
          options={[["", "server default"], "on", "off"]}
          onChange={(thinking) => set({ thinking })}
        />
        {probes.length > 0 && (
          <Choice
            label="Probe"
            value={settings.watch}
            options={[["", "none"], ...probes.map(({ name }) => name)]}
            onChange={(watch) => set({ watch })}
          />
        )}
        {dictionaries.length > 0 && (
          <Choice
            label="Features"
            value={settings.dictionary}
            options={[
              ["", "none"],
              ...dictionaries.map(({ name, layer }) => [name, `${name}, layer ${layer}`] as const),
            ]}
            onChange={(dictionary) => set({ dictionary })}
          />
        )}
      </p>
    </section>
  );
}
