import { useState } from "preact/hooks";
import { Button, Problem, useTrying } from "./form.js";

/** Copies the page's address, which contains ids and selections only. */
export function CopyLink({ path }: { path?: string }) {
  const [copied, setCopied] = useState(false);
  const { problem, trying } = useTrying();
  const copy = () =>
    trying(async () => {
      const address = path === undefined ? location.href : new URL(path, location.origin).href;
      await navigator.clipboard.writeText(address);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    });
  return (
    <>
      <Button class="quiet" onClick={() => void copy()}>
        {copied ? "Copied" : "Copy link"}
      </Button>
      <Problem sentence={problem} />
    </>
  );
}
