import { type Outcome, type StudyPackage, studyLimits } from "../contracts/studies/index.js";
import { cut } from "../text/words.js";
import { type Compared, differedText, reproductionBlock, type Tolerances } from "./reproduction.js";
import type { Words } from "./words.js";

export interface Repeated {
  study: string;
  version: number;
  package_sha256: string;
  address: string;
  content: StudyPackage;
  outcome: Outcome;
  compared: readonly Compared[];
  tolerances: Tolerances;
  /** Requests that were not run, and why. */
  left: readonly string[];
}

/** What each outcome means. */
export const sentences: Record<Outcome, string> = {
  held: "All figures match the original within the tolerances.",
  partly: "Some figures match the original within the tolerances, and some do not.",
  failed: "No figure matches the original within the tolerances.",
};

/** Draft text of a reproduction, for its author to extend. Finding and method are data; the interpretation is theirs. */
export function reproductionWords(repeated: Repeated, method: string): Words {
  const { study, version, package_sha256, address, content, outcome, compared, tolerances, left } = repeated;
  const title = oneLine(content.title);
  const differed = differedText(compared);
  const block = reproductionBlock({
    study,
    version,
    package_sha256,
    outcome,
    ...(differed === "" ? {} : { differed }),
  });
  const rows = compared.map(
    ({ title: figure, values, within, missing, held }) =>
      `| ${escaped(figure)} | ${within} of ${values} | ${missing} | ${held ? "held" : "differs"} |`,
  );
  return {
    title: cut(`Reproduction: ${title}`, studyLimits.title),
    question: cut(
      `Does “${escaped(title)}” (<${address}>, version ${version}) reproduce on another machine?`,
      studyLimits.question,
    ),
    hypothesis: "",
    method: cut(
      `The original's Lab requests were run again, and every value of its figures was compared with the new one. Tolerances: ${tolerances.share} for probabilities and shares, ${tolerances.relative * 100} % for everything else. A figure matches if 95 % of its values do.\n\n${method}`,
      studyLimits.method,
    ),
    finding: `${sentences[outcome]}\n\n| figure | values within tolerance | values in only one result | |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n\n${block}`,
    limitations:
      "Repeating the requests shows that the values are reproducible, not that the original's interpretation is right. The original's limitations also apply.",
    license: content.license,
    omissions: [...left],
  };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Untrusted text inside Markdown, with special characters escaped. */
function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]<>()#+!|~$]/g, (character) => `\\${character}`);
}
