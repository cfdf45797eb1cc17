import type { ComponentChildren, ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { type Onward, onward } from "../router.js";

/** A button that does not submit a form. */
export function Button(props: ComponentProps<"button">) {
  return <button type="button" {...props} />;
}

/** An error message, if there is one. */
export function Problem({ sentence }: { sentence: string | undefined }) {
  if (sentence === undefined) return null;
  return (
    <p class="problem" role="alert">
      {sentence}
    </p>
  );
}

/**
 * Runs an action and keeps its error message until the next attempt. The action navigates through `onward`, which does
 * nothing once the user has gone elsewhere. `trying` resolves to whether the action succeeded.
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

/** Sets fields of a draft that outlives its view, and renders the view again. */
export function useDraft<T extends object>(draft: T): (change: Partial<T>) => void {
  const [, again] = useState(0);
  return (change) => {
    Object.assign(draft, change);
    again((count) => count + 1);
  };
}

/** The fields of a form, and a function that changes some of them. */
export function useFields<T>(initial: () => T): readonly [fields: T, set: (change: Partial<T>) => void] {
  const [fields, setFields] = useState(initial);
  return [fields, (change) => setFields((before) => ({ ...before, ...change }))];
}

interface FormProps {
  onSubmit: () => unknown;
  problem?: string | undefined;
  class?: string;
  children: ComponentChildren;
}

/** A form that Enter in a field or the main button submits. */
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
