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

const sentences: Record<Outcome, string> = {
  held: "Every figure came out as there, within the tolerances.",
  partly: "Some figures came out as there, within the tolerances, and some did not.",
  failed: "No figure came out as there, within the tolerances.",
};

/** A draft's words of a reproduction, for its author to go on from. Finding and method are data; what it means is theirs. */
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
      `Does “${escaped(title)}” (<${address}>, version ${version}) come out the same on another machine?`,
      studyLimits.question,
    ),
    hypothesis: "",
    method: cut(
      `The Lab requests of the original, run again; every value of its figures beside the new one. Tolerances: ${tolerances.share} for probabilities and shares, ${tolerances.relative * 100} % for everything else; a figure holds where 95 % of its values do.\n\n${method}`,
      studyLimits.method,
    ),
    finding: `${sentences[outcome]}\n\n| figure | values within | in one alone | |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n\n${block}`,
    limitations:
      "The same requests show that the figures come again, not that they mean what the original says; its own limitations stay.",
    license: content.license,
    omissions: [...left],
  };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Text of somebody else inside Markdown: characters that would mean something are only themselves. */
function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]<>()#+!|~$]/g, (character) => `\\${character}`);
}
