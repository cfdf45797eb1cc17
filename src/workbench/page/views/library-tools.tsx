import { useState } from "preact/hooks";
import { call, post } from "../session.js";
import { Field } from "./fields.js";
import { Button, Form, Problem, useTrying } from "./form.js";
import { Menu } from "./menu.js";

interface LibraryToolsProps {
  kind: "vectors" | "probes" | "profiles" | "dictionaries" | "lenses";
  name: string;
  /** Called with the new name, or with nothing after deletion. */
  onChange?: (name?: string) => void;
}

/** Renames or deletes a saved direction, probe, profile, dictionary or lens. */
export function LibraryTools({ kind, name, onChange }: LibraryToolsProps) {
  const [to, setTo] = useState(name);
  const { problem, trying } = useTrying();
  const path = `/api/library/${kind}/${encodeURIComponent(name)}`;
  const rename = () =>
    trying(async () => {
      await post(`${path}/rename`, { name: to.trim() });
      onChange?.(to.trim());
    });
  const remove = () =>
    trying(async () => {
      await call(path, { method: "DELETE" });
      onChange?.();
      document.getElementById("content")?.focus();
    });
  return (
    <Menu label="Rename or delete" name={`Rename or delete ${name}`}>
      <Form class="stacked" onSubmit={rename}>
        <Field label="New name" value={to} onChange={setTo} />
        <button type="submit" disabled={to.trim() === "" || to.trim() === name}>
          Rename
        </button>
      </Form>
      <details>
        <summary>Delete {name}</summary>
        <p>Deleting cannot be undone.</p>
        <Button aria-label={`Confirm deleting ${name}`} onClick={() => void remove()}>
          Delete
        </Button>
      </details>
      <Problem sentence={problem} />
    </Menu>
  );
}
