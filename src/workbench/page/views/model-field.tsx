import { useState } from "preact/hooks";
import type { ModelsHere } from "../../wire.js";
import { labModel } from "../jobs.js";
import { shortModel } from "../model-name.js";
import { call } from "../session.js";
import { known, useWork } from "../store.js";
import { Choice } from "./fields.js";

/** The names of the models on this machine, the served one first; only that one while they are loading. */
export function useModelNames(): string[] {
  const [found, set] = useState<string[]>([]);
  const { models, server } = known.state ?? {};
  useWork([models?.changes, server?.model], (isOver) => {
    call<ModelsHere>("/api/models").then(
      ({ models }) => !isOver() && set(models.map(({ id }) => id)),
      () => {},
    );
  });
  return [...new Set([labModel(), ...found])];
}

interface ModelFieldProps {
  label: string;
  /** Empty for the served model. */
  value: string;
  names: readonly string[];
  onChange: (model: string) => void;
}

/** One of the models on this machine. */
export function ModelField({ label, value, names, onChange }: ModelFieldProps) {
  const all = value === "" || names.includes(value) ? names : [value, ...names];
  const repeated = (name: string) => all.filter((one) => shortModel(one) === shortModel(name)).length > 1;
  return (
    <Choice
      label={label}
      value={value === "" ? all[0] : value}
      options={all.map((name) => [name, repeated(name) ? name : shortModel(name)] as const)}
      onChange={onChange}
    />
  );
}
