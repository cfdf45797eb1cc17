import { useEffect } from "preact/hooks";
import type { AskRequest } from "../../../contracts/workbench.js";
import type { Conversation, Turn } from "../../wire.js";
import { chatSettings as settings } from "../chat-settings.js";
import { asMarkdown } from "../conversation-text.js";
import { doneSentence } from "../differences.js";
import { draft } from "../draft.js";
import { select, usePlace } from "../router.js";
import { post } from "../session.js";
import { type Shade, shades } from "../shades.js";
import { changed, known, readConversation, useTopic } from "../store.js";
import { ChatSettings } from "./chat-settings.js";
import { Composer, firstQuestion } from "./composer.js";
import { Contrasts, sliderTokens } from "./contrasts.js";
import { ConversationList } from "./conversation-list.js";
import { Edits, firstEdit, interventionsOf, newEdit, useLibrary } from "./edits.js";
import { Check, Choice } from "./fields.js";
import { Button, Problem, useDraft, useTrying } from "./form.js";
import { type ForkFrom, Inside } from "./inside.js";
import { saveText } from "./picture.js";
import { TurnView } from "./turn.js";

export function ChatView({ id }: { id: string | undefined }) {
  useTopic("state");
  useTopic(`conversation ${id}`);
  useTopic("settings");
  const { query } = usePlace();
  const library = useLibrary();
  const { problem, trying } = useTrying();
  const { state } = known;
  const conversation = id === undefined ? undefined : known.conversations.get(id);
  useEffect(() => {
    void trying(async () => {
      if (id !== undefined) await readConversation(id);
    });
  }, [id]);
  const { set: update } = useDraft(settings);
  const set = (change: Partial<typeof settings>) => {
    update(change);
    changed("settings");
  };
  const template = state?.server.chat_template !== false;
  const shade = (query.get("show") ?? "none") as Shade;
  const running = conversation?.turns.some(({ answers }) =>
    answers.some((answer) => answer.state === "running"),
  );
  const [turnAt, answerAt, tokenAt] = (query.get("t") ?? "").split(".").map(Number);
  const turn = conversation?.turns[turnAt ?? -1];
  const token = turn?.answers[answerAt ?? -1]?.tokens[tokenAt ?? -1];
  const send = (text: string, raw: boolean, insteadOf?: number, inPlace = false, short = inPlace) =>
    trying(async ({ go }) => {
      const interventions = interventionsOf(settings.edits);
      const asked: AskRequest = {
        text,
        ...(conversation === undefined && raw && { raw: true }),
        ...(interventions.length > 0 && { interventions }),
        ...(settings.profile !== "" && { profile: settings.profile }),
        ...((interventions.length > 0 || settings.profile !== "") && { pair: settings.pair }),
        ...(settings.watch !== "" && { probes: [settings.watch] }),
        ...(settings.dictionary !== "" && { dictionary: settings.dictionary }),
        ...(insteadOf !== undefined && { instead_of: insteadOf }),
        ...(inPlace && { in_place: true }),
        ...(settings.system.trim() !== "" && { system: settings.system }),
        temperature: settings.temperature,
        max_tokens: short ? Math.min(settings.tokens, sliderTokens) : settings.tokens,
        ...(settings.thinking !== "" && { thinking: settings.thinking === "on" }),
      };
      const path = id === undefined ? "/api/conversations" : `/api/conversations/${id}/turns`;
      const started = await post<{ conversation: string }>(path, asked);
      const rest = new URLSearchParams(location.search);
      rest.delete("t");
      go(`/chat/${started.conversation}${rest.size === 0 ? "" : `?${rest}`}`);
    });
  const last = conversation?.turns.at(-1);
  const again =
    conversation === undefined || last === undefined || running === true
      ? undefined
      : () => void send(last.question, conversation.raw, conversation.turns.length - 1);
  const runContrasts = (example: string) => {
    const own = firstQuestion.text;
    if (last !== undefined && conversation !== undefined) {
      void send(last.question, conversation.raw, conversation.turns.length - 1, true);
    } else if (id === undefined) {
      const text = own === undefined || own.trim() === "" ? example : own;
      firstQuestion.text = undefined;
      void send(text, firstQuestion.raw ?? !template, undefined, false, true);
    }
  };
  const fork = (at: number, from: ForkFrom) =>
    trying(async ({ go }) => {
      const body = { turn: turnAt, answer: answerAt, token: at, ...from };
      const started = await post<{ conversation: string }>(`/api/conversations/${id}/forks`, body);
      go(`/chat/${started.conversation}`);
    });
  return (
    <div class="chat">
      <ConversationList shown={id} />
      <section class="talk" aria-label="Conversation">
        <h1 class={conversation === undefined ? "" : "visually-hidden"}>{conversation?.title ?? "Chat"}</h1>
        {conversation === undefined && id === undefined && (
          <p class="soft">
            Ask a question, then {clickHint} “Change a layer” reruns the model with that layer modified and
            shows both answers.
          </p>
        )}
        <div class="row" role="group" aria-label="Token colours">
          <Choice
            label="Colour by"
            value={shade}
            options={[
              ...shades.map((name) => [name, name === "none" ? "nothing" : name] as const),
              ...(library?.probes ?? []).map(({ name }): Shade => `probe ${name}`),
            ]}
            onChange={(show) => select({ show: show === "none" ? undefined : show })}
          />
          <Legend shade={shade} />
          <Check checked={settings.markdown} onChange={(markdown) => set({ markdown })}>
            Markdown
          </Check>
          {conversation !== undefined && <ExportButtons conversation={conversation} />}
        </div>
        <Contrasts onEdits={(edits) => set({ edits })} onRun={runContrasts} />
        <div class="turns" role="log" aria-live="off">
          {conversation?.turns.map((one, index) => (
            <TurnView
              key={index}
              conversation={conversation.id}
              turn={one}
              index={index}
              shade={shade}
              markdown={settings.markdown && !conversation.raw}
              busy={running === true}
              selected={
                turnAt === index ? { answer: answerAt as number, token: tokenAt as number } : undefined
              }
              onOpen={(answer, at) => select({ t: `${index}.${answer}.${at}` })}
              onAskAgain={(text) => void send(text, conversation.raw, index)}
            />
          ))}
        </div>
        {again !== undefined && conversation?.turns.length === 1 && (
          <p class="next">
            {settings.edits.length === 0 ? (
              <>
                Next, {clickHint}{" "}
                <Button
                  onClick={() => {
                    set({ edits: [firstEdit(state?.server.n_embd ?? null)] });
                    again();
                  }}
                >
                  Rerun with a layer changed
                </Button>
              </>
            ) : (
              "Adjust the intervention under Interventions; click a word to see its alternatives."
            )}
          </p>
        )}
        <Announcer turns={conversation?.turns ?? []} />
        <Problem sentence={problem} />
        <Composer
          first={conversation === undefined}
          raw={conversation?.raw}
          running={running === true}
          ready={state?.server.ok === true}
          template={template}
          onSend={send}
          onStop={() => trying(() => post(`/api/conversations/${id}/stop`))}
        />
      </section>
      <aside class="beside" aria-label="Token, interventions and settings">
        {turn !== undefined && token !== undefined && (
          <Inside
            turn={turn}
            token={token}
            at={tokenAt as number}
            busy={running === true}
            onFork={fork}
            onSteer={(feature) =>
              set({ edits: [...settings.edits, newEdit("steer", feature.layer, "", feature)] })
            }
            onInspect={() =>
              void trying(async ({ go }) => {
                const place = { turn: turnAt, answer: answerAt, token: tokenAt };
                draft.inspect = await post(`/api/conversations/${id}/context`, place);
                go("/inspect");
              })
            }
            onClose={() => select({ t: undefined })}
          />
        )}
        <Edits
          edits={settings.edits}
          pair={settings.pair}
          layers={state?.server.n_layer ?? 1}
          width={state?.server.n_embd ?? null}
          library={library}
          onEdits={(edits) => set({ edits })}
          onPair={(pair) => set({ pair })}
          onAgain={again}
          profile={settings.profile}
          onProfile={(profile) => set({ profile })}
        />
        <ChatSettings library={library} />
      </aside>
    </div>
  );
}

const clickHint = "click any word in the answer to see the alternatives and what each layer predicted.";

/** Announces to screen readers when an answer starts and ends. */
function Announcer({ turns }: { turns: Turn[] }) {
  const last = turns.at(-1);
  const running = last?.answers.some(({ state }) => state === "running");
  return (
    <p class="visually-hidden" aria-live="polite">
      {last === undefined ? "" : running ? "generating" : doneSentence(last.answers)}
    </p>
  );
}

function Legend({ shade }: { shade: Shade }) {
  if (shade === "none") return null;
  const [low, high] =
    shade === "entropy" ? ["0 bits", "3 or more"] : shade === "probability" ? ["0 %", "100 %"] : ["0", "1"];
  return (
    <span class="legend-line">
      {low} <span class="ramp" /> {high}
    </span>
  );
}

/** Saves the whole conversation: with all its data, or only its text. */
function ExportButtons({ conversation }: { conversation: Conversation }) {
  const name = `conversation-${conversation.id}`;
  return (
    <>
      <Button
        class="quiet"
        onClick={() => saveText(`${name}.json`, "application/json", JSON.stringify(conversation, null, 2))}
      >
        Save as JSON
      </Button>
      <Button class="quiet" onClick={() => saveText(`${name}.md`, "text/markdown", asMarkdown(conversation))}>
        Save as Markdown
      </Button>
    </>
  );
}
