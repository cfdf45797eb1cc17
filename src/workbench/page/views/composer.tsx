import { useEffect, useRef, useState } from "preact/hooks";
import { known } from "../store.js";
import { Check } from "./fields.js";
import { Button, Form } from "./form.js";

const example = "The capital of France is";
const examples = ["Tell me about dogs.", "How do I bake bread?", "Write a short poem about the sea."];
const rawExamples = ["The capital of Japan is", "Once upon a time, there was", "My favorite food is"];

/** The first question as the user has typed it, for the sliders: undefined while it is the page's own example. */
export const firstQuestion: { text: string | undefined; raw: boolean | undefined } = {
  text: undefined,
  raw: undefined,
};

interface ComposerProps {
  first: boolean;
  raw: boolean | undefined;
  running: boolean;
  ready: boolean;
  /** Whether the model has a chat template. */
  template: boolean;
  /** @returns whether the question was accepted */
  onSend: (text: string, raw: boolean) => Promise<boolean>;
  onStop: () => void;
}

/** The field for the next question. */
export function Composer({ first, raw, running, ready, template, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(first && known.state?.conversations.length === 0 ? example : "");
  const [chosenRaw, setRaw] = useState<boolean>();
  const asRaw = chosenRaw ?? !template;
  const field = useRef<HTMLTextAreaElement>(null);
  firstQuestion.raw = asRaw;
  // A slider has asked its own first question instead of the page's example.
  useEffect(() => {
    if (!first) setText((now) => (now === example ? "" : now));
  }, [first]);
  const write = (text: string) => {
    firstQuestion.text = text;
    setText(text);
  };
  const send = () => {
    if (text.trim() === "" || running || !ready) return;
    setText("");
    void onSend(text, asRaw).then((accepted) => {
      // Restore a rejected question, unless another one has been started.
      if (!accepted) setText((now) => (now === "" ? text : now));
      // The pressed button no longer exists; do not take the focus from another element.
      if (document.activeElement === document.body) field.current?.focus();
    });
  };
  return (
    <Form class="composer" onSubmit={send}>
      <label class="visually-hidden" for="question">
        Message
      </label>
      <textarea
        id="question"
        ref={field}
        rows={3}
        value={text}
        placeholder="Message the model… (Enter to send, Shift+Enter for a new line)"
        onInput={(event) => write(event.currentTarget.value)}
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
          <Check checked={asRaw} onChange={setRaw}>
            Raw text (no chat template)
          </Check>
        )}
        {first && !template && (
          <span class="soft">This model has no chat template: it continues your text as it is.</span>
        )}
        {!first && raw === true && <span class="soft">Raw text (no chat template)</span>}
      </p>
      {first && (
        <p class="row try" role="group" aria-label="Example prompts">
          <span class="soft">Try:</span>
          {(asRaw ? rawExamples : examples).map((one) => (
            <Button
              key={one}
              class="quiet"
              onClick={() => {
                write(one);
                field.current?.focus();
              }}
            >
              {one}
            </Button>
          ))}
        </p>
      )}
    </Form>
  );
}
