export { randomVector, shuffle, uniformNumbers } from "../findings/random.js";
export {
  Dictionaries,
  type DictionaryClaims,
  decoderRows,
  type OpenDictionary,
  writtenPoint,
} from "./dictionaries.js";
export { addSet, setAt } from "./dictionary-sets.js";
export { type DirectionMethod, dot, lengthOf, makeDirection, type States } from "./direction.js";
export { editOf } from "./edit-of.js";
export { type FileForm, readProbe, readVector, writeProbe, writeVector } from "./files.js";
export { modelFingerprint } from "./fingerprint.js";
export { checkBlockOutput, type ModelIdentity } from "./identity.js";
export type { FromHub } from "./layout-files.js";
export { Lenses } from "./lenses.js";
export { type ProbeNumbers, type ProbeReport, Probes } from "./probes.js";
export { Profiles } from "./profiles.js";
export { writeRandomLike } from "./random-dictionary.js";
export type { Shelved } from "./shelf.js";
export { type LayerReport, Vectors } from "./vectors.js";
