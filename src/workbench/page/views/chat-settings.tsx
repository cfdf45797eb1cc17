import { chatSettings as settings } from "../chat-settings.js";
import type { Library } from "./edits.js";
import { Choice, NumberField } from "./fields.js";
import { useKept } from "./form.js";

/** What the next answers are sampled with, and what is read in their tokens. */
export function ChatSettings({ library }: { library: Library | undefined }) {
  const set = useKept(settings);
  const { probes = [], dictionaries = [] } = library ?? {};
  return (
    <section class="card" aria-label="Settings">
      <h2>Settings</h2>
      <p class="row">
        <NumberField
          label="temperature"
          min={0}
          max={5}
          step={0.1}
          value={settings.temperature}
          onChange={(temperature) => set({ temperature })}
        />
        <NumberField
          label="most tokens"
          min={1}
          max={4096}
          value={settings.tokens}
          onChange={(tokens) => set({ tokens })}
        />
        <Choice
          label="thinking"
          value={settings.thinking}
          options={[["", "as the server likes"], "on", "off"]}
          onChange={(thinking) => set({ thinking })}
        />
        {probes.length > 0 && (
          <Choice
            label="watch"
            value={settings.watch}
            options={[["", "no probe"], ...probes.map(({ name }) => name)]}
            onChange={(watch) => set({ watch })}
          />
        )}
        {dictionaries.length > 0 && (
          <Choice
            label="features"
            value={settings.dictionary}
            options={[
              ["", "of no dictionary"],
              ...dictionaries.map(({ name, layer }) => [name, `${name}, layer ${layer}`] as const),
            ]}
            onChange={(dictionary) => set({ dictionary })}
          />
        )}
      </p>
    </section>
  );
}
