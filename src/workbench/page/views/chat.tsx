import { useEffect, useRef, useState } from "preact/hooks";
import type { AskRequest } from "../../../contracts/workbench.js";
import { percent } from "../../../report/figure.js";
import type { AnswerToken, Candidate, DoneEdit, Turn, TurnAnswer } from "../../wire.js";
import { chatSettings as settings } from "../chat-settings.js";
import { draft } from "../draft.js";
import { follow, go, select, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, readConversation, useTopic } from "../store.js";
import { AnswerText, type Shade, shades } from "./answer-text.js";
import { Edits, interventionsOf, useLibrary } from "./edits.js";
import { Problem, useKept, useTrying } from "./form.js";
import { Inside } from "./inside.js";
import { RequestCode } from "./request-code.js";

const example = "The capital of France is";

export function ChatView({ id }: { id: string | undefined }) {
  useTopic("state");
  useTopic(`conversation ${id}`);
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
  const set = useKept(settings);
  const shade = (query.get("show") ?? "none") as Shade;
  const running = conversation?.turns.some(({ answers }) =>
    answers.some((answer) => answer.state === "running"),
  );
  const [turnAt, answerAt, tokenAt] = (query.get("t") ?? "").split(".").map(Number);
  const turn = conversation?.turns[turnAt ?? -1];
  const token = turn?.answers[answerAt ?? -1]?.tokens[tokenAt ?? -1];
  const send = (text: string, raw: boolean) =>
    trying(async () => {
      const interventions = interventionsOf(settings.edits);
      const asked: AskRequest = {
        text,
        ...(conversation === undefined && raw && { raw: true }),
        ...(interventions.length > 0 && { interventions, pair: settings.pair }),
        ...(settings.watch !== "" && { probes: [settings.watch] }),
        temperature: settings.temperature,
        max_tokens: settings.tokens,
        ...(settings.thinking !== "" && { thinking: settings.thinking === "on" }),
      };
      const path = id === undefined ? "/api/conversations" : `/api/conversations/${id}/turns`;
      const begun = await call<{ conversation: string }>(path, { method: "POST", body: asked });
      const kept = new URLSearchParams(location.search);
      kept.delete("t");
      go(`/chat/${begun.conversation}${kept.size === 0 ? "" : `?${kept}`}`);
    });
  const fork = (at: number, candidate: Candidate | undefined) =>
    trying(async () => {
      const body = {
        turn: turnAt,
        answer: answerAt,
        token: at,
        ...(candidate !== undefined && { token_id: candidate.token_id }),
      };
      const begun = await call<{ conversation: string }>(`/api/conversations/${id}/forks`, {
        method: "POST",
        body,
      });
      go(`/chat/${begun.conversation}`);
    });
  return (
    <div class="chat">
      <Conversations shown={id} />
      <section class="talk" aria-label="Conversation">
        <h1 class={conversation === undefined ? "" : "visually-hidden"}>{conversation?.title ?? "Chat"}</h1>
        {conversation === undefined && id === undefined && (
          <p class="soft">
            Ask, then click a word of the answer to see what it was chosen from. With “Change a layer” the
            next answer is given with that layer changed, and the model's own beside it.
          </p>
        )}
        <div class="row" role="group" aria-label="Colour the tokens by">
          <label>
            Colour by{" "}
            <select
              value={shade}
              onChange={(event) =>
                select({ show: event.currentTarget.value === "none" ? undefined : event.currentTarget.value })
              }
            >
              {shades.map((name) => (
                <option key={name} value={name}>
                  {name === "none" ? "nothing" : name}
                </option>
              ))}
              {(library?.probes ?? []).map(({ name }) => (
                <option key={name} value={`probe ${name}`}>
                  probe {name}
                </option>
              ))}
            </select>
          </label>
          <Legend shade={shade} />
          {conversation !== undefined && <ExportButton id={conversation.id} />}
        </div>
        <div class="turns" role="log" aria-live="off">
          {conversation?.turns.map((one, index) => (
            <TurnView
              key={index}
              conversation={conversation.id}
              turn={one}
              index={index}
              shade={shade}
              selected={
                turnAt === index ? { answer: answerAt as number, token: tokenAt as number } : undefined
              }
              onOpen={(answer, at) => select({ t: `${index}.${answer}.${at}` })}
            />
          ))}
        </div>
        <Announcer turns={conversation?.turns ?? []} />
        <Problem sentence={problem} />
        <Composer
          first={conversation === undefined}
          raw={conversation?.raw}
          running={running === true}
          ready={state?.server.ok === true}
          onSend={send}
          onStop={() => trying(() => call(`/api/conversations/${id}/stop`, { method: "POST" }))}
        />
      </section>
      <aside class="beside" aria-label="Beside the conversation">
        {turn !== undefined && token !== undefined && (
          <Inside
            turn={turn}
            token={token}
            at={tokenAt as number}
            busy={running === true}
            onFork={fork}
            onInspect={() => {
              draft.inspect = textBefore(turn, answerAt as number, tokenAt as number);
              go("/inspect");
            }}
            onClose={() => select({ t: undefined })}
          />
        )}
        <Edits
          edits={settings.edits}
          pair={settings.pair}
          layers={state?.server.n_layer ?? 1}
          library={library}
          onEdits={(edits) => set({ edits })}
          onPair={(pair) => set({ pair })}
        />
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
                <select
                  value={settings.watch}
                  onChange={(event) => set({ watch: event.currentTarget.value })}
                >
                  <option value="">no probe</option>
                  {library?.probes.map(({ name }) => (
                    <option key={name} value={name}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
            )}
          </p>
        </section>
      </aside>
    </div>
  );
}

function Conversations({ shown }: { shown: string | undefined }) {
  const list = known.state?.conversations ?? [];
  return (
    <nav class="conversations" aria-label="Conversations">
      <a class="new" href="/chat" onClick={follow} aria-current={shown === undefined ? "page" : undefined}>
        New conversation
      </a>
      <ul>
        {list.map(({ id, title, running }) => (
          <li key={id}>
            <a href={`/chat/${id}`} onClick={follow} aria-current={id === shown ? "page" : undefined}>
              <bdi>{title}</bdi>
              {running && <span class="soft"> answering</span>}
            </a>
            <button
              type="button"
              class="quiet"
              aria-label={`Delete “${title}”`}
              disabled={running}
              onClick={() => {
                if (!confirm(`Delete the conversation “${title}”?`)) return;
                void call(`/api/conversations/${id}`, { method: "DELETE" }).then(() => {
                  known.conversations.delete(id);
                  if (id === shown) go("/chat");
                });
              }}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface TurnViewProps {
  conversation: string;
  turn: Turn;
  index: number;
  shade: Shade;
  selected: { answer: number; token: number } | undefined;
  onOpen: (answer: number, token: number) => void;
}

function TurnView({ conversation, turn, shade, selected, onOpen }: TurnViewProps) {
  const { answers } = turn;
  const [first, second] = answers;
  const done = answers.every(({ state }) => state !== "running");
  const differsAt = done ? firstDifference(first, second) : undefined;
  return (
    <article class="turn">
      <p class="question">
        <bdi>{turn.question}</bdi>
      </p>
      {answers.map((answer, at) => (
        <div class="answer" key={at}>
          {second !== undefined && (
            <p class="soft">{answer.edited ? "With the interventions" : "The model's own"}</p>
          )}
          <AnswerText
            conversation={conversation}
            answer={answer}
            shade={shade}
            selected={selected?.answer === at ? selected.token : undefined}
            differsAt={differsAt}
            label={`Answer to “${turn.question.slice(0, 80)}”${second === undefined ? "" : answer.edited ? ", with the interventions" : ", the model's own"}`}
            onOpen={(token) => onOpen(at, token)}
          />
          <p class="soft">{endOf(answer)}</p>
          {(answer.edits ?? []).map((edit, place) => (
            <p class={(edit.mean_change_length ?? 0) > 0 ? "soft" : "problem"} key={place}>
              {editSentence(edit, turn, place)}
            </p>
          ))}
        </div>
      ))}
      {second !== undefined && done && (
        <p class="difference">
          {differsAt === undefined
            ? "Both answers are the same, token by token."
            : `First difference: token ${differsAt}.`}
        </p>
      )}
      <RequestCode
        request={{
          service: "server",
          url: known.state?.server.url ?? "",
          path: turn.request.path,
          body: turn.request.body,
        }}
      />
    </article>
  );
}

/** The first token in which two answers are not the same; undefined where they are the same throughout. */
export function firstDifference(
  one: TurnAnswer | undefined,
  other: TurnAnswer | undefined,
): number | undefined {
  if (one === undefined || other === undefined) return undefined;
  const length = Math.max(one.tokens.length, other.tokens.length);
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [one.tokens[at], other.tokens[at]];
    if (left?.id !== right?.id || left?.text !== right?.text) return at;
  }
  return undefined;
}

function endOf({ state, finish, error, tokens }: TurnAnswer): string {
  const count = tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
  switch (state) {
    case "running":
      return "answering …";
    case "stopped":
      return `stopped after ${count}`;
    case "failed":
      return error ?? "The answer failed.";
    case "done":
      return finish === "length"
        ? `${count}; the limit ended it`
        : finish === "stop"
          ? count
          : `${count}, ${finish}`;
  }
}

function editSentence(
  { rows, mean_row_length, mean_change_length, note }: DoneEdit,
  turn: Turn,
  at: number,
): string {
  const asked = turn.interventions[at];
  const what = `${asked?.kind.replaceAll("_", " ") ?? "edit"}${asked?.layer === undefined ? "" : ` at layer ${asked.layer}`}`;
  const share =
    mean_row_length !== undefined && mean_change_length !== undefined && mean_row_length > 0
      ? `, changed by ${percent(mean_change_length / mean_row_length)} of their length`
      : "";
  return `${what}: ${rows === 1 ? "1 row" : `${rows} rows`}${share}.${note === undefined ? "" : ` ${note}`}`;
}

/** The raw text of a conversation's turn up to a token, that token included. */
function textBefore(turn: Turn, answer: number, token: number): string {
  const tokens: AnswerToken[] = turn.answers[answer]?.tokens.slice(0, token + 1) ?? [];
  const said = tokens.filter(({ thinking }) => thinking !== true).map(({ text }) => text);
  return turn.question + said.join("");
}

/** One polite sentence when an answer begins and when it ends, for those who hear the page. */
function Announcer({ turns }: { turns: Turn[] }) {
  const last = turns.at(-1);
  const running = last?.answers.some(({ state }) => state === "running");
  const tokens = last?.answers[0]?.tokens.length ?? 0;
  return (
    <p class="visually-hidden" aria-live="polite">
      {last === undefined ? "" : running ? "answering" : `done, ${tokens} tokens`}
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

function ExportButton({ id }: { id: string }) {
  return (
    <button
      type="button"
      class="quiet"
      onClick={() => {
        const text = JSON.stringify(known.conversations.get(id), null, 2);
        void import("../pictures.js").then(({ download }) =>
          download(`conversation-${id}.json`, new Blob([text], { type: "application/json" })),
        );
      }}
    >
      Save as JSON
    </button>
  );
}

interface ComposerProps {
  first: boolean;
  raw: boolean | undefined;
  running: boolean;
  ready: boolean;
  onSend: (text: string, raw: boolean) => Promise<void>;
  onStop: () => void;
}

function Composer({ first, raw, running, ready, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(first && known.state?.conversations.length === 0 ? example : "");
  const [asRaw, setRaw] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const send = () => {
    if (text.trim() === "" || running || !ready) return;
    setText("");
    void onSend(text, asRaw).then(() => field.current?.focus());
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="visually-hidden" for="question">
        Message
      </label>
      <textarea
        id="question"
        ref={field}
        rows={3}
        value={text}
        placeholder="Write; Enter sends, Shift with Enter begins a new line"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <p class="row">
        {running ? (
          <button type="button" onClick={onStop}>
            Stop
          </button>
        ) : (
          <button type="submit" class="main" disabled={!ready || text.trim() === ""}>
            Send
          </button>
        )}
        {first && (
          <label class="check">
            <input
              type="checkbox"
              checked={asRaw}
              onChange={(event) => setRaw(event.currentTarget.checked)}
            />
            raw text, without the chat template
          </label>
        )}
        {!first && raw === true && <span class="soft">raw text, without the chat template</span>}
      </p>
    </form>
  );
}
