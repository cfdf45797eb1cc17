import { type Compiled, compile } from "../../contracts/compile.js";
import {
  blockLabels,
  labelledBlocks,
  ReproductionBlock,
  type StudyPackage,
} from "../../contracts/studies/index.js";

/** Most studies that one study can claim to reproduce. */
const mostReproduced = 10;

let validator: Compiled | undefined;

/** The studies that a package claims to reproduce, each once (the first claim counts). Invalid blocks are ignored. */
export function reproductionsIn(study: StudyPackage): ReproductionBlock[] {
  validator ??= compile(ReproductionBlock);
  const found = new Map<string, ReproductionBlock>();
  for (const text of labelledBlocks(study, blockLabels.reproduction)) {
    const block = parsed(text);
    if (!validator.Check(block)) continue;
    const valid = block as ReproductionBlock;
    const id = valid.study.toLowerCase();
    if (!found.has(id) && found.size < mostReproduced) found.set(id, { ...valid, study: id });
  }
  return [...found.values()];
}

/** A block's JSON; undefined if it is not valid. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
