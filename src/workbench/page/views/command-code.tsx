import { Button } from "./form.js";

/** The same action as terminal commands. */
export function CommandCode({ lines }: { lines: string[] }) {
  return (
    <details class="code">
      <summary>In a terminal</summary>
      <div class="row">
        <Button class="quiet" onClick={() => void navigator.clipboard.writeText(lines.join("\n"))}>
          Copy
        </Button>
      </div>
      <pre tabIndex={0} role="region" aria-label="In a terminal">
        <code>{lines.join("\n")}</code>
      </pre>
    </details>
  );
}
