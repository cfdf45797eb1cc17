import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The width of phones in style.css. */
const narrowWindow = "(max-width: 52rem)";

/** A view's form. In a narrow window it gives way to its result, and one line opens it again. */
export function Fold({ hasResult, children }: { hasResult: boolean; children: ComponentChildren }) {
  const isNarrow = useMedia(narrowWindow);
  const folds = isNarrow && hasResult;
  const [open, setOpen] = useState(!folds);
  useEffect(() => setOpen(!folds), [folds]);
  return (
    <details
      class={folds ? "fold" : "fold whole"}
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>Change the settings</summary>
      {children}
    </details>
  );
}

function useMedia(query: string): boolean {
  const [matches, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const notify = () => set(media.matches);
    media.addEventListener("change", notify);
    return () => media.removeEventListener("change", notify);
  }, [query]);
  return matches;
}
