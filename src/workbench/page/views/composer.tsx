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
  /** @returns whether the question was taken */
  onSend: (text: string, raw: boolean) => Promise<boolean>;
  onStop: () => void;
}

/** Where a question is written. */
export function Composer({ first, raw, running, ready, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(first && known.state?.conversations.length === 0 ? example : "");
  const [asRaw, setRaw] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const send = () => {
    if (text.trim() === "" || running || !ready) return;
    setText("");
    void onSend(text, asRaw).then((taken) => {
      // What was refused stands there again, unless something else was begun.
      if (!taken) setText((now) => (now === "" ? text : now));
      // A button that was pressed is gone by now; who went elsewhere meanwhile stays there.
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
          <Check checked={asRaw} onChange={setRaw}>
            raw text, without the chat template
          </Check>
        )}
        {!first && raw === true && <span class="soft">raw text, without the chat template</span>}
      </p>
    </Form>
  );
}
