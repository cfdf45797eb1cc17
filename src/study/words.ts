import { licenses, studyLimits } from "../contracts/studies/index.js";

/** What only a person can say about a study. */
export interface Words {
  title: string;
  question: string;
  hypothesis: string;
  method: string;
  finding: string;
  limitations: string;
  license: string;
  /** What was left out beside what tapline itself leaves out. */
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

/** The headings of the file, in its order, each with what belongs below it. */
const sections: { name: keyof Words; hint: string }[] = [
  { name: "title", hint: `One line, at most ${studyLimits.title} characters.` },
  { name: "question", hint: `What did you ask? At most ${studyLimits.question} characters.` },
  { name: "hypothesis", hint: "What did you expect, before you looked? May stay empty." },
  { name: "method", hint: `How was it done? At most ${studyLimits.method} characters.` },
  { name: "finding", hint: "What came out? May stay empty." },
  {
    name: "limitations",
    hint: "What does it not show? A readout is not causal evidence; one model is one model.",
  },
  { name: "license", hint: licenses.join(" or ") },
  { name: "omissions", hint: "Anything that you left out and why, one a line. tapline adds its own." },
];

const heading = (name: string) => `# ${name[0]?.toUpperCase()}${name.slice(1)}`;

/**
 * The words as a file for an editor: headings, hints as comments, and on top what was wrong with the last try.
 * {@link readWords} gives them back.
 */
export function writeWords(words: Words, faults: readonly string[] = []): string {
  const top = [
    ...faults.map((fault) => `<!-- ! ${comment(fault)} -->`),
    "<!-- Write below the headings, save, and close the editor. Comments like this one are left out. -->",
    "<!-- A file without words gives up. -->",
  ];
  const parts = sections.map(({ name, hint }) => {
    const value = words[name];
    const text = Array.isArray(value) ? value.join("\n") : value;
    return `${heading(name)}\n<!-- ${comment(hint)} -->\n${text}\n`;
  });
  return `${top.join("\n")}\n\n${parts.join("\n")}`;
}

/** A line's comment ends where the line does. */
function comment(text: string): string {
  return text.replace(/\s+/g, " ").replaceAll("-->", "- ->");
}

/**
 * Reads the file of {@link writeWords}. Lines that are whole comments go; a heading is one of its own alone, so a
 * text may have others.
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

/** Whether nothing was written at all. */
export function isBlank(words: Words): boolean {
  return Object.values(words).every((value) => value.length === 0);
}
