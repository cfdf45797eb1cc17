import { licenses, studyLimits } from "../contracts/studies/index.js";

/** The text of a study, written by a person. */
export interface Words {
  title: string;
  question: string;
  hypothesis: string;
  method: string;
  finding: string;
  limitations: string;
  license: string;
  /** Omissions in addition to those that tapline lists itself. */
  omissions: string[];
}

export const emptyWords: Words = {
  title: "",
  question: "",
  hypothesis: "",
  method: "",
  finding: "",
  limitations: "",
  license: "",
  omissions: [],
};

/** The headings of the file in order, each with a hint. */
const sections: { name: keyof Words; hint: string }[] = [
  { name: "title", hint: `One line, at most ${studyLimits.title} characters.` },
  { name: "question", hint: `What did you ask? At most ${studyLimits.question} characters.` },
  { name: "hypothesis", hint: "What did you expect before you looked? Optional." },
  { name: "method", hint: `How was it done? At most ${studyLimits.method} characters.` },
  { name: "finding", hint: "What did you find? Optional." },
  {
    name: "limitations",
    hint: "What does it not show? A readout is not causal evidence; one model is one model.",
  },
  { name: "license", hint: licenses.join(" or ") },
  { name: "omissions", hint: "Anything you left out and why, one per line. tapline adds its own." },
];

const heading = (name: string) => `# ${name[0]?.toUpperCase()}${name.slice(1)}`;

/**
 * The words as a file for an editor: headings, hints as comments, and at the top the errors of the last attempt.
 * {@link readWords} parses it.
 */
export function writeWords(words: Words, faults: readonly string[] = []): string {
  const top = [
    ...faults.map((fault) => `<!-- ! ${comment(fault)} -->`),
    "<!-- Write below the headings, save, and close the editor. Comments like this one are ignored. -->",
    "<!-- To cancel, leave the file empty. -->",
  ];
  const parts = sections.map(({ name, hint }) => {
    const value = words[name];
    const text = Array.isArray(value) ? value.join("\n") : value;
    return `${heading(name)}\n<!-- ${comment(hint)} -->\n${text}\n`;
  });
  return `${top.join("\n")}\n\n${parts.join("\n")}`;
}

/** Keeps a comment on one line. */
function comment(text: string): string {
  return text.replace(/\s+/g, " ").replaceAll("-->", "- ->");
}

/**
 * Reads the file of {@link writeWords}. Lines that are comments are dropped. Only the known headings start a section, so
 * texts may contain other headings.
 */
export function readWords(file: string): Words {
  const texts = new Map<string, string[]>();
  let current: string[] | undefined;
  for (const line of file.replace(/^\uFEFF/, "").split(/\r?\n/)) {
    if (/^\s*<!--.*-->\s*$/.test(line)) continue;
    const section = sections.find(({ name }) => line.trim().toLowerCase() === heading(name).toLowerCase());
    if (section !== undefined) {
      current = texts.get(section.name) ?? [];
      texts.set(section.name, current);
    } else current?.push(line);
  }
  const text = (name: string) => (texts.get(name) ?? []).join("\n").trim();
  return {
    ...(Object.fromEntries(sections.map(({ name }) => [name, text(name)])) as Omit<Words, "omissions">),
    omissions: text("omissions")
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  };
}

/** Whether all fields are empty. */
export function isBlank(words: Words): boolean {
  return Object.values(words).every((value) => value.length === 0);
}
