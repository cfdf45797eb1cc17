import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { percent } from "../../../findings/numbers.js";
import type { DoneEdit, Turn, TurnAnswer } from "../../wire.js";
import { branchesAt, ownerOf } from "../branches.js";
import { answerNumbers } from "../chat-numbers.js";
import { comparisonOf, differenceSentence } from "../differences.js";
import { serverRequest } from "../jobs.js";
import { follow } from "../router.js";
import type { Shade } from "../shades.js";
import { known } from "../store.js";
import { AnswerText } from "./answer-text.js";
import { Area } from "./fields.js";
import { Button, Form } from "./form.js";
import { HtmlPicture } from "./picture.js";
import { RequestCode } from "./request-code.js";

interface TurnViewProps {
  conversation: string;
  turn: Turn;
  index: number;
  shade: Shade;
  markdown: boolean;
  busy: boolean;
  selected: { answer: number; token: number } | undefined;
  onOpen: (answer: number, token: number) => void;
  onAskAgain: (text: string) => void;
}

/** A question with its answers. */
export function TurnView({
  conversation,
  turn,
  index,
  shade,
  markdown,
  busy,
  selected,
  onOpen,
  onAskAgain,
}: TurnViewProps) {
  const { answers } = turn;
  const [first, second] = answers;
  const differences = comparisonOf(answers);
  return (
    <article class="turn">
      <Question turn={turn} index={index} conversation={conversation} busy={busy} onAskAgain={onAskAgain} />
      {answers.map((answer, at) => (
        <div class="answer" key={at}>
          {second !== undefined && (
            <p class="soft">{answer.edited ? "With the interventions" : "The model's own"}</p>
          )}
          <HtmlPicture
            title={labelOf(turn, answer) + (shade === "none" ? "" : `, coloured by ${shade}`)}
            name={`conversation-${conversation}-${index + 1}${["a", "b"][at]}`}
            numbers={() => answerNumbers(turn, answer)}
          >
            <AnswerText
              conversation={conversation}
              answer={answer}
              shade={shade}
              selected={selected?.answer === at ? selected.token : undefined}
              differs={differences?.[at === 0 ? "one" : "other"]}
              label={labelOf(turn, answer)}
              markdown={markdown}
              onOpen={(token) => onOpen(at, token)}
            />
          </HtmlPicture>
          <p class="soft">{endOf(answer)}</p>
          {answer.unread !== undefined && <p class="problem">{answer.unread}</p>}
          {(answer.edits ?? []).map((edit, place) => (
            <p class={(edit.mean_change_length ?? 0) > 0 ? "soft" : "problem"} key={place}>
              {editSentence(edit, turn, place)}
            </p>
          ))}
        </div>
      ))}
      {differences !== undefined && (
        <p class="difference">{differenceSentence(differences, first?.tokens.length ?? 0)}</p>
      )}
      <RequestCode request={serverRequest(turn.request.path, turn.request.body)} />
    </article>
  );
}

function labelOf({ question, answers }: Turn, { edited }: TurnAnswer): string {
  const which = answers.length < 2 ? "" : edited ? ", with the interventions" : ", the model's own";
  return `Answer to “${question.slice(0, 80)}”${which}`;
}

interface QuestionProps {
  turn: Turn;
  index: number;
  conversation: string;
  busy: boolean;
  onAskAgain: (text: string) => void;
}

/** What was asked, the ways that it went on, and the same in other words. */
function Question({ turn, index, conversation, busy, onAskAgain }: QuestionProps) {
  const [text, setText] = useState<string>();
  const field = useRef<HTMLTextAreaElement>(null);
  const isOpen = text !== undefined;
  // Once: whoever goes on from there while the page is drawn again is not taken back.
  useLayoutEffect(() => {
    if (isOpen) field.current?.focus();
  }, [isOpen]);
  if (text === undefined) {
    return (
      <div class="asked">
        <p class="question">
          <bdi>{turn.question}</bdi>
        </p>
        <Branches conversation={conversation} index={index} />
        <Button class="quiet" disabled={busy} onClick={() => setText(turn.question)}>
          Ask otherwise
        </Button>
      </div>
    );
  }
  return (
    <Form
      class=""
      onSubmit={() => {
        setText(undefined);
        onAskAgain(text);
      }}
    >
      <Area label="Instead of this question" rows={3} value={text} field={field} onChange={setText} />
      <p class="row">
        <button type="submit" class="main" disabled={text.trim() === ""}>
          Ask
        </button>
        <Button class="quiet" onClick={() => setText(undefined)}>
          Leave it
        </Button>
      </p>
    </Form>
  );
}

/** The conversations that go on differently from here, to go from one to the next. */
function Branches({ conversation, index }: { conversation: string; index: number }) {
  const all = known.state?.conversations ?? [];
  const branches = branchesAt(all, conversation, index);
  if (branches.length < 2) return null;
  const own = ownerOf(new Map(all.map((one) => [one.id, one])), conversation, index);
  const at = branches.indexOf(own);
  const step = (to: number, name: string, sign: string) => {
    const id = branches[to];
    return id === undefined ? (
      <span aria-hidden="true">{sign}</span>
    ) : (
      <a href={`/chat/${id}`} onClick={follow} aria-label={`${name} way on from question ${index + 1}`}>
        {sign}
      </a>
    );
  };
  return (
    <span class="branches">
      {step(at - 1, "Previous", "‹")} way {at + 1} of {branches.length} {step(at + 1, "Next", "›")}
    </span>
  );
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
