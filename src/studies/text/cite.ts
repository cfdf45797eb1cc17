import { hiddenCharacters, type StudyPackage } from "../../contracts/studies/index.js";

/** Data for citing one version of a study. */
export interface Citable {
  /** Permalink of the version. */
  address: string;
  id: string;
  version: number;
  title: string;
  author: string;
  license: StudyPackage["license"];
  publishedAt: number;
  sha256: string;
}

/** One line without hidden characters, since these formats are line-based. */
function plain(text: string): string {
  return text.replace(/\s+/g, " ").replace(hiddenCharacters, "").trim();
}

function dayOf({ publishedAt }: Citable): [year: string, month: string, day: string] {
  const [year, month, day] = new Date(publishedAt).toISOString().slice(0, 10).split("-");
  return [year as string, month as string, day as string];
}

const commands: Record<string, string> = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
};

/** A text escaped for BibTeX. */
function tex(text: string): string {
  return plain(text).replace(/[\\{}$&#%_~^]/g, (character) => commands[character] ?? `\\${character}`);
}

export function bibtex(study: Citable): string {
  const [year, month] = dayOf(study);
  const fields = [
    ["title", `{${tex(study.title)}}`],
    ["author", `{${tex(study.author)}}`],
    ["year", year],
    ["month", String(Number(month))],
    ["howpublished", "tapline studies"],
    ["version", String(study.version)],
    ["url", study.address],
    ["note", `${study.license}, SHA-256 ${study.sha256}`],
  ];
  const lines = fields.map(([name, value]) => `  ${name} = {${value}},\n`);
  return `@misc{tapline-${study.id.slice(0, 8)}-v${study.version},\n${lines.join("")}}\n`;
}

/** Citation File Format 1.2.0; its strings are JSON's, which YAML reads. */
export function cff(study: Citable): string {
  const text = (value: string) => JSON.stringify(plain(value));
  return `cff-version: 1.2.0
message: "If you use this study, please cite it as below."
type: dataset
title: ${text(study.title)}
authors:
  - name: ${text(study.author)}
version: "${study.version}"
date-released: ${dayOf(study).join("-")}
license: ${study.license}
url: ${text(study.address)}
identifiers:
  - type: other
    value: ${text(`urn:uuid:${study.id}`)}
    description: "Id of the study"
  - type: other
    value: "sha256:${study.sha256}"
    description: "SHA-256 of the package"
`;
}

/** RIS: CRLF line ends, two spaces after each tag. */
export function ris(study: Citable): string {
  const [year, month, day] = dayOf(study);
  const lines = [
    ["TY", "DATA"],
    ["TI", plain(study.title)],
    ["AU", plain(study.author)],
    ["PY", year],
    ["DA", `${year}/${month}/${day}`],
    ["ET", String(study.version)],
    ["PB", "tapline studies"],
    ["UR", study.address],
    ["C1", study.license],
    ["ID", `${study.id}v${study.version}`],
    ["ER", ""],
  ];
  return lines.map(([tag, value]) => `${tag}  - ${value}\r\n`).join("");
}
