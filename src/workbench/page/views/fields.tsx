import type { ComponentChildren, Ref } from "preact";
import { count } from "../../../findings/numbers.js";
import { linesOf } from "../lists.js";

interface CheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  /** The label after the box. */
  children: ComponentChildren;
}

export function Check({ checked, onChange, children }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {children}
    </label>
  );
}

interface ChoiceProps<T> {
  label: ComponentChildren;
  value: T | undefined;
  /** Values, with a label if it differs from the value. */
  options: readonly (T | readonly [value: T, words: string])[];
  onChange: (value: T) => void;
}

/** One of several values. */
export function Choice<T extends string | number>({ label, value, options, onChange }: ChoiceProps<T>) {
  const all = options.map((one) => (typeof one === "object" ? one : ([one, String(one)] as const)));
  return (
    <label>
      {label}{" "}
      <select
        value={value}
        onChange={({ currentTarget }) => {
          const chosen = all[currentTarget.selectedIndex];
          if (chosen !== undefined) onChange(chosen[0]);
        }}
      >
        {all.map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TextProps {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
}

/** A single line of text after its label. */
export function Field({ label, onChange, ...input }: TextProps & { label: string; class?: string }) {
  return (
    <label>
      {label} <input {...input} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

/** Layer indices and ranges, such as `0, 3, 5-7`. */
export function LayersField(props: TextProps) {
  return <Field label="Layers" class="layers" placeholder="all" {...props} />;
}

interface NumberProps {
  label: string;
  value: number;
  min: number;
  max: number;
  /** Increment of the arrows; without it, only integers are accepted. */
  step?: number;
  onChange: (value: number) => void;
}

export function NumberField({ label, onChange, ...input }: NumberProps) {
  const isValid = input.step === undefined ? Number.isInteger : Number.isFinite;
  return (
    <label>
      {label}{" "}
      <input
        type="number"
        {...input}
        onInput={({ currentTarget: { valueAsNumber } }) => isValid(valueAsNumber) && onChange(valueAsNumber)}
      />
    </label>
  );
}

interface AreaProps extends TextProps {
  label: string;
  hint?: string;
  rows: number;
  class?: string;
  field?: Ref<HTMLTextAreaElement>;
}

/** A multi-line text below its label. */
export function Area({ label, hint, onChange, field, ...area }: AreaProps) {
  return (
    <label class="field">
      {label} {hint !== undefined && <span class="soft">{hint}</span>}
      <textarea {...area} ref={field ?? null} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}

/** A list of texts, one per line. */
export function TextsField({ rows = 6, ...props }: Omit<AreaProps, "rows"> & { rows?: number }) {
  return <Area rows={rows} hint={`${count(linesOf(props.value).length, "text")}, one per line`} {...props} />;
}
