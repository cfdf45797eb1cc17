import { useRef, useState } from "preact/hooks";
import { known } from "../store.js";
import { Check } from "./fields.js";
import { Form } from "./form.js";

const example = "The capital of France is";

interface ComposerProps {
  first: boolean;
  raw: boolean | undefined;
  running: boolean;
  ready: boolean;
  /** @returns whether the question was accepted */
  onSend: (text: string, raw: boolean) => Promise<boolean>;
  onStop: () => void;
}

/** The field for the next question. */
export function Composer({ first, raw, running, ready, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(first && known.state?.conversations.length === 0 ? example : "");
  const [asRaw, setRaw] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
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
          <Check checked={asRaw} onChange={setRaw}>
            Raw text (no chat template)
          </Check>
        )}
        {!first && raw === true && <span class="soft">Raw text (no chat template)</span>}
      </p>
    </Form>
  );
}
