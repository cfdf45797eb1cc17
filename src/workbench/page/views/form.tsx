import type { ComponentChildren, ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { type Onward, onward } from "../router.js";

/** A button that hands nothing in. */
export function Button(props: ComponentProps<"button">) {
  return <button type="button" {...props} />;
}

/** What went wrong, if anything did. */
export function Problem({ sentence }: { sentence: string | undefined }) {
  if (sentence === undefined) return null;
  return (
    <p class="problem" role="alert">
      {sentence}
    </p>
  );
}

/**
 * Work that somebody asks for, and why the last of it failed; a new attempt takes that away. What it leads to is shown
 * unless one has gone elsewhere meanwhile. `trying` says whether the work was done.
 */
export function useTrying() {
  const [problem, setProblem] = useState<string>();
  const trying = async (work: (onward: Onward) => Promise<unknown>): Promise<boolean> => {
    setProblem(undefined);
    try {
      await work(onward());
      return true;
    } catch (error) {
      setProblem((error as Error).message);
      return false;
    }
  };
  return { problem, trying };
}

/** Sets fields of something that is kept while one looks at other views, and draws this one again. */
export function useKept<T extends object>(kept: T): (change: Partial<T>) => void {
  const [, again] = useState(0);
  return (change) => {
    Object.assign(kept, change);
    again((count) => count + 1);
  };
}

interface FormProps {
  onSubmit: () => unknown;
  problem?: string | undefined;
  class?: string;
  children: ComponentChildren;
}

/** What a job, a question or a change is made from; Enter in a field or the main button hands it in. */
export function Form({ onSubmit, problem, children, class: kind = "card" }: FormProps) {
  return (
    <form
      class={kind}
      onSubmit={(event) => {
        event.preventDefault();
        void onSubmit();
      }}
    >
      {children}
      <Problem sentence={problem} />
    </form>
  );
}
