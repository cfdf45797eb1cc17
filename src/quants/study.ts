import { randomUUID } from "node:crypto";
import type { CompletedJob } from "../client/index.js";
import type { Job } from "../contracts/index.js";
import { mostQuantsForms } from "../contracts/studies/index.js";
import { UserError } from "../contracts/user-error.js";
import {
  assemble,
  type Evidence,
  emptyWords,
  faultsOf,
  jobEvidence,
  liveEvidence,
  methodText,
} from "../study/index.js";
import { quantsBlock } from "./block.js";
import type { Quants } from "./result.js";
import { quantsMarkdown } from "./tables.js";
import { cautionsOf, findingOf } from "./words.js";

/**
 * A study package of the result and of the Lab's jobs, with generated words for a person to revise.
 * @throws UserError if it is not valid
 */
export function quantsStudy(quants: Quants, jobs: readonly CompletedJob[], license: string): Buffer {
  const { reference, forms } = quants;
  const names = forms.map(({ name }) => name).join(", ");
  const evidence = [quantsEvidence(quants), ...jobs.map((job) => jobEvidence(job as Job))];
  const finished = assemble(
    {
      ...emptyWords,
      title: `What quantization does to ${reference.file}`,
      question: `How do ${names} differ from ${reference.file}, in their answers and inside?`,
      method: methodText(evidence),
      finding: findingOf(quants).join(" "),
      limitations: cautionsOf(quants).join(" "),
      license,
    },
    evidence,
  );
  const faults = faultsOf(finished);
  if (faults.length > 0) throw new UserError(`The study package is incomplete: ${faults.join(" ")}`);
  return finished.bytes;
}

/** The result as entries of a study, with a table for people and a block for machines. */
export function quantsEvidence(quants: Quants): Evidence {
  const { reference, forms, settings, machine, tapline } = quants;
  const names = forms.map(({ name }) => name).join(", ");
  const figures = liveEvidence(
    {
      id: "quants",
      what: `Figures of ${forms.length} forms`,
      method: `tapline quants: ${names} of ${reference.file} on ${settings.texts} texts with ${settings.tokens} predictions, and ${settings.rounds} rounds for speed.`,
      request: {
        settings,
        files: [reference, ...forms].map(({ name, file, fingerprint }) => ({ name, file, fingerprint })),
      },
      exchanges: [],
      result: quants,
    },
    reference.file,
    `tapline ${tapline}, llama.cpp ${machine.llama_cpp}`,
  );
  const result = figures.entries.find(({ kind }) => kind === "result");
  figures.entries.push({
    ...{
      id: randomUUID(),
      parent: result?.id ?? null,
      kind: "result",
      title: `Table of ${forms.length} forms`,
    },
    note: `${quantsMarkdown(quants)}\n${quantsBlock(quants)}`,
  });
  if (forms.length > mostQuantsForms) {
    figures.omissions.push(
      `All but the first ${mostQuantsForms} of ${forms.length} forms, in the list of measurements by model.`,
    );
  }
  return figures;
}
