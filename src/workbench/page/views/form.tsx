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

type Setter<T> = (change: Partial<T>) => void;

/** The fields of a draft that outlives its view: `set` changes some of them and renders the view again. */
export function useDraft<T extends object>(draft: T) {
  const [, again] = useState(0);
  const set: Setter<T> = (change) => {
    Object.assign(draft, change);
    again((count) => count + 1);
  };
  return { set, bind: binding(draft, set) };
}

/** The fields of a form, and a function that changes some of them. */
export function useFields<T extends object>(initial: () => T) {
  const [fields, setFields] = useState(initial);
  const set: Setter<T> = (change) => setFields((before) => ({ ...before, ...change }));
  return { fields, set, bind: binding(fields, set) };
}

/** The properties that connect an input to a field: `<Field label="Name" {...bind("name")} />`. */
function binding<T extends object>(fields: T, set: Setter<T>) {
  return <Name extends keyof T>(name: Name) => ({
    value: fields[name],
    onChange: (value: T[Name]) => set({ [name]: value } as unknown as Partial<T>),
  });
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
