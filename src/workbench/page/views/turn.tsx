import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { count, percent } from "../../../findings/numbers.js";
import type { DoneEdit, Turn, TurnAnswer } from "../../wire.js";
import { branchesAt, ownerOf } from "../branches.js";
import { answerNumbers } from "../chat-numbers.js";
import { comparisonOf, differenceSentence } from "../differences.js";
import { serverRequest } from "../jobs.js";
import { follow } from "../router.js";
import type { Shade } from "../shades.js";
import { known } from "../store.js";
import { wholeWords } from "../words.js";
import { AnswerText } from "./answer-text.js";
import { Control } from "./control.js";
import { editName } from "./edits.js";
import { Area } from "./fields.js";
import { Button, Form } from "./form.js";
import { HtmlPicture } from "./picture.js";
import { ScriptMenu } from "./request-code.js";

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
  const [, second] = answers;
  // On the left and first for the keyboard: the baseline.
  const order = [...answers.entries()].sort(
    ([, one], [, other]) => Number(one.edited) - Number(other.edited),
  );
  const differences = comparisonOf(answers);
  const words =
    differences &&
    answers.map(({ tokens }, at) => wholeWords(tokens, differences[at === 0 ? "one" : "other"]));
  return (
    <article class="turn">
      <Question turn={turn} index={index} conversation={conversation} busy={busy} onAskAgain={onAskAgain} />
      <div class={second === undefined ? "" : "panes"}>
        {order.map(([at, answer]) => (
          <div class={answer.edited ? "answer" : "answer baseline"} key={at}>
            {second !== undefined && (
              <p class="soft">{answer.edited ? editedWords(turn) : "Baseline (unmodified)"}</p>
            )}
            {second === undefined && turn.profile !== undefined && <p class="soft">{editedWords(turn)}</p>}
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
                differs={words?.[at]?.tokens}
                label={labelOf(turn, answer)}
                markdown={markdown}
                onOpen={(token) => onOpen(at, token)}
              />
            </HtmlPicture>
            <p class="soft">{endOf(answer)}</p>
            {answer.unread !== undefined && <p class="problem">{answer.unread}</p>}
            {(answer.edits ?? []).map((edit, place) => (
              <p class={(edit.mean_change_length ?? 0) > 0 ? "soft" : "problem"} key={place}>
                {editSentence(edit)}
              </p>
            ))}
          </div>
        ))}
      </div>
      {differences !== undefined && words?.[0] !== undefined && (
        <p class="difference">{differenceSentence(differences, words[0])}</p>
      )}
      <Control turn={turn} />
      <div class="row">
        <ScriptMenu request={serverRequest(turn.request.path, turn.request.body)} />
      </div>
    </article>
  );
}

/** The settings of a modified answer. */
function editedWords({ profile, interventions }: Turn): string {
  if (profile === undefined) return "With interventions";
  return `With the profile ${profile}${interventions.length === 0 ? "" : " and interventions"}`;
}

function labelOf({ question, answers }: Turn, { edited }: TurnAnswer): string {
  const which = answers.length < 2 ? "" : edited ? ", with interventions" : ", baseline";
  return `Answer to “${question.slice(0, 80)}”${which}`;
}

interface QuestionProps {
  turn: Turn;
  index: number;
  conversation: string;
  busy: boolean;
  onAskAgain: (text: string) => void;
}

/** The question, its other versions, and a form to edit it. */
function Question({ turn, index, conversation, busy, onAskAgain }: QuestionProps) {
  const [text, setText] = useState<string>();
  const field = useRef<HTMLTextAreaElement>(null);
  const isOpen = text !== undefined;
  // Only once, so that a later render does not move the focus back.
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
          Edit question
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
      <Area label="Edit your question" rows={3} value={text} field={field} onChange={setText} />
      <p class="row">
        <button type="submit" class="main" disabled={text.trim() === ""}>
          Ask
        </button>
        <Button class="quiet" onClick={() => setText(undefined)}>
          Cancel
        </Button>
      </p>
    </Form>
  );
}

/** Links to the conversations that have another version of this question. */
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
      <a href={`/chat/${id}`} onClick={follow} aria-label={`${name} version of question ${index + 1}`}>
        {sign}
      </a>
    );
  };
  return (
    <span class="branches" role="group" aria-label={`Version ${at + 1} of ${branches.length}`}>
      {step(at - 1, "Previous", "‹")} {at + 1}/{branches.length} {step(at + 1, "Next", "›")}
    </span>
  );
}

function endOf({ state, finish, error, tokens }: TurnAnswer): string {
  const length = count(tokens.length, "token");
  switch (state) {
    case "running":
      return "Generating…";
    case "stopped":
      return `Stopped after ${length}`;
    case "failed":
      return error ?? "The answer failed.";
    case "done":
      return finish === "length"
        ? `${length} (stopped at the limit)`
        : finish === "stop"
          ? length
          : `${length}, ${finish}`;
  }
}

function editSentence(edit: DoneEdit): string {
  const { rows, mean_row_length, mean_change_length, note } = edit;
  const share =
    mean_row_length !== undefined && mean_change_length !== undefined && mean_row_length > 0
      ? `, mean change ${percent(mean_change_length / mean_row_length)} of the activation norm`
      : "";
  return `${editName(edit)}: ${count(rows, "position")}${share}.${note === undefined ? "" : ` ${note}`}`;
}
