export { type DirectionMethod, makeDirection } from "./direction.js";
export { editOf } from "./edit-of.js";
export { type FileForm, readProbe, readVector, writeProbe, writeVector } from "./files.js";
export { modelFingerprint } from "./fingerprint.js";
export type { ModelIdentity } from "./identity.js";
export { type ProbeNumbers, type ProbeReport, Probes } from "./probes.js";
export { uniformNumbers } from "./random.js";
export type { Shelved } from "./shelf.js";
export { type LayerReport, Vectors } from "./vectors.js";
