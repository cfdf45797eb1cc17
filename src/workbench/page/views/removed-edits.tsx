import { useEffect, useRef, useState } from "preact/hooks";
import { chatSettings } from "../chat-settings.js";
import { changed, listen } from "../store.js";
import { type Edit, editName } from "./edits.js";
import { Button } from "./form.js";

/** Offers to take the removal of an intervention back, until the next change of the list. */
export function RemovedEdits() {
  const before = useRef<readonly Edit[]>(chatSettings.edits);
  const [removed, setRemoved] = useState<readonly Edit[]>();
  useEffect(
    () =>
      listen("settings", () => {
        const now = chatSettings.edits;
        const keys = new Set(now.map(({ key }) => key));
        const isShorter = before.current.some(({ key }) => !keys.has(key));
        const isLonger = now.length > before.current.length;
        if (isShorter) setRemoved(before.current);
        // Another intervention or the undone one: the older list is out of date.
        else if (isLonger) setRemoved(undefined);
        before.current = now;
      }),
    [],
  );
  if (removed === undefined) return null;
  const keys = new Set(chatSettings.edits.map(({ key }) => key));
  const gone = removed.filter(({ key }) => !keys.has(key));
  const [one] = gone;
  if (one === undefined) return null;
  const undo = () => {
    const now = new Map(chatSettings.edits.map((edit) => [edit.key, edit]));
    // In their former places, with the changes to the others since then.
    chatSettings.edits = removed.map((edit) => now.get(edit.key) ?? edit);
    changed("settings");
  };
  return (
    <span class="undo" role="status">
      Removed {gone.length === 1 ? editName(one) : `${gone.length} interventions`}.{" "}
      <Button class="quiet" onClick={undo}>
        Undo
      </Button>
    </span>
  );
}
