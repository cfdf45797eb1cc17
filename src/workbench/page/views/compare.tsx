import { chatSettings } from "../chat-settings.js";
import { labModel, submit } from "../jobs.js";
import { follow, usePlace } from "../router.js";
import { post } from "../session.js";
import { known, useTopic } from "../store.js";
import { Comparison } from "./compared-runs.js";
import { interventionsOf, type Library, useLibrary } from "./edits.js";
import { Area, Check, Choice, Field, NumberField } from "./fields.js";
import { Fold } from "./fold.js";
import { Form, useDraft, useTrying } from "./form.js";
import { ModelField, useModelNames } from "./model-field.js";

/** The aspect in which the two runs differ. */
const kinds = [
  ["models", "two models, or two forms of one"],
  ["prompts", "two prompts"],
  ["settings", "two settings"],
] as const;

/** The form, kept while other views are open. */
const draft: {
  kind: (typeof kinds)[number][0];
  text: string;
  other: string;
  /** Empty for the served model. */
  models: [string, string];
  tracked: string;
  question: string;
  raw: boolean;
  /** No interventions, those of the chat, or `profile NAME`. */
  edits: [string, string];
  temperatures: [number, number];
  tokens: number;
} = {
  kind: "prompts",
  text: "The capital of France is",
  other: "The capital of Japan is",
  models: ["", ""],
  tracked: "",
  question: "What is the capital of France?",
  raw: false,
  edits: ["", "chat"],
  temperatures: [0, 0],
  tokens: 48,
};

const sides = ["First", "Second"] as const;

/** Two runs next to each other, and their differences at every layer and token. */
export function CompareView({ id }: { id: string | undefined }) {
  useTopic("state");
  useTopic("settings");
  const { query } = usePlace();
  const other = query.get("with") ?? undefined;
  const { set, bind } = useDraft(draft);
  const { problem, trying } = useTrying();
  const library = useLibrary();
  const names = useModelNames();
  const { kind } = draft;
  const { server, lab } = known.state ?? {};
  const template = server?.chat_template !== false;
  const ready = kind === "settings" ? server?.ok === true : lab?.ok === true;
  const run = () =>
    trying(async ({ go }) => {
      const ids =
        kind === "settings"
          ? (await post<{ ids: string[] }>("/api/readings", readingRequest(!template))).ids
          : await inspections();
      go(`/compare/${ids[0]}?with=${ids[1]}`);
    });
  return (
    <div class="page">
      <h1>Compare</h1>
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          Run two models, prompts or settings and see at which layer and token they part. To compare two
          models on many texts,{" "}
          <a href="/drift" onClick={follow}>
            measure their drift
          </a>
          .
        </p>
        <Form onSubmit={run} problem={problem}>
          <p class="row">
            <Choice label="Compare" options={kinds} {...bind("kind")} />
          </p>
          {kind === "models" && (
            <>
              <Area label="Text" rows={2} {...bind("text")} />
              <p class="row">
                {sides.map((side, at) => (
                  <ModelField
                    key={side}
                    label={`${side} model`}
                    names={names}
                    value={draft.models[at] ?? ""}
                    onChange={(model) => set({ models: replaced(draft.models, at, model) })}
                  />
                ))}
              </p>
            </>
          )}
          {kind === "prompts" && (
            <div class="twins">
              <Area label="First text" rows={2} {...bind("text")} />
              <Area label="Second text" rows={2} {...bind("other")} />
            </div>
          )}
          {kind === "settings" && (
            <>
              <Area label={template ? "Question" : "Beginning of the text"} rows={2} {...bind("question")} />
              <div class="twins">
                {sides.map((side, at) => (
                  <SettingsFields
                    key={side}
                    side={side}
                    library={library}
                    edits={draft.edits[at] ?? ""}
                    temperature={draft.temperatures[at] ?? 0}
                    onEdits={(edits) => set({ edits: replaced(draft.edits, at, edits) })}
                    onTemperature={(temperature) =>
                      set({ temperatures: replaced(draft.temperatures, at, temperature) })
                    }
                  />
                ))}
              </div>
            </>
          )}
          <p class="row">
            {kind === "settings" ? (
              <>
                <NumberField label="Max tokens" min={1} max={256} {...bind("tokens")} />
                {template && (
                  <Check checked={draft.raw} onChange={(raw) => set({ raw })}>
                    Raw text, without chat template
                  </Check>
                )}
              </>
            ) : (
              <Field label="Track token" placeholder="none" {...bind("tracked")} />
            )}
            <button type="submit" class="main" disabled={!ready}>
              Compare
            </button>
          </p>
        </Form>
      </Fold>
      {id !== undefined && other !== undefined && (
        <Comparison key={`${id} ${other}`} one={id} other={other} />
      )}
    </div>
  );
}

interface SettingsProps {
  side: string;
  library: Library | undefined;
  edits: string;
  temperature: number;
  onEdits: (edits: string) => void;
  onTemperature: (temperature: number) => void;
}

/** How one of two answers is made. */
function SettingsFields({ side, library, edits, temperature, onEdits, onTemperature }: SettingsProps) {
  const active = chatSettings.edits.filter(({ on }) => on).length;
  const options = [
    ["", "none"] as const,
    ["chat", `the chat's (${active})`] as const,
    ...(library?.profiles ?? []).map(({ name }) => [`profile ${name}`, `profile ${name}`] as const),
  ];
  return (
    <fieldset>
      <legend>{side}</legend>
      <p class="row">
        <Choice label="Interventions" value={edits} options={options} onChange={onEdits} />
        <NumberField
          label="Temperature"
          min={0}
          max={5}
          step={0.1}
          value={temperature}
          onChange={onTemperature}
        />
      </p>
    </fieldset>
  );
}

function replaced<T>([first, second]: [T, T], at: number, value: T): [T, T] {
  return at === 0 ? [value, second] : [first, value];
}

function readingRequest(withoutTemplate: boolean) {
  const own = interventionsOf(chatSettings.edits);
  const settings = draft.edits.map((edits, at) => ({
    ...(edits === "chat" && own.length > 0 && { interventions: own }),
    ...(edits.startsWith("profile ") && { profile: edits.slice("profile ".length) }),
    temperature: draft.temperatures[at],
  }));
  const raw = withoutTemplate || draft.raw;
  return { text: draft.question, ...(raw && { raw }), sides: settings, max_tokens: draft.tokens };
}

/** Submits an inspection for each side. @returns their ids */
async function inspections(): Promise<string[]> {
  const { kind, text, other, models, tracked } = draft;
  const ids: string[] = [];
  for (const at of [0, 1] as const) {
    ids.push(
      await submit({
        operation: "inspect",
        model: (kind === "models" && models[at]) || labModel(),
        prompt: kind === "prompts" && at === 1 ? other : text,
        // Every layer is measured; this one's activations are saved as well.
        layers: [0],
        ...(tracked !== "" && { target_token: tracked }),
      }),
    );
  }
  return ids;
}
