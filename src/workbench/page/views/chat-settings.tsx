import { chatSettings as settings } from "../chat-settings.js";
import type { Library } from "./edits.js";
import { useKept } from "./form.js";

/** What the next answers are sampled with, and what is read in their tokens. */
export function ChatSettings({ library }: { library: Library | undefined }) {
  const set = useKept(settings);
  const dictionaries = library?.dictionaries ?? [];
  return (
    <section class="card" aria-label="Settings">
      <h2>Settings</h2>
      <p class="row">
        <label>
          temperature{" "}
          <input
            type="number"
            min={0}
            max={5}
            step={0.1}
            value={settings.temperature}
            onInput={({ currentTarget: { valueAsNumber: temperature } }) =>
              Number.isFinite(temperature) && set({ temperature })
            }
          />
        </label>
        <label>
          most tokens{" "}
          <input
            type="number"
            min={1}
            max={4096}
            value={settings.tokens}
            onInput={({ currentTarget: { valueAsNumber: tokens } }) =>
              Number.isInteger(tokens) && set({ tokens })
            }
          />
        </label>
        <label>
          thinking{" "}
          <select
            value={settings.thinking}
            onChange={(event) => set({ thinking: event.currentTarget.value })}
          >
            <option value="">as the server likes</option>
            <option value="on">on</option>
            <option value="off">off</option>
          </select>
        </label>
        {(library?.probes.length ?? 0) > 0 && (
          <label>
            watch{" "}
            <select value={settings.watch} onChange={(event) => set({ watch: event.currentTarget.value })}>
              <option value="">no probe</option>
              {library?.probes.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        {dictionaries.length > 0 && (
          <label>
            features{" "}
            <select
              value={settings.dictionary}
              onChange={(event) => set({ dictionary: event.currentTarget.value })}
            >
              <option value="">of no dictionary</option>
              {dictionaries.map(({ name, layer }) => (
                <option key={name} value={name}>
                  {`${name}, layer ${layer}`}
                </option>
              ))}
            </select>
          </label>
        )}
      </p>
    </section>
  );
}
