export { dictionaryFiles, filesBeside } from "./choose.js";
export type { Activation, Dictionary, DictionaryOrigin, RowScaling, TensorSource } from "./dictionary.js";
export { type LayoutFiles, layouts, readDictionary } from "./read.js";
export { transcoderBetween } from "./transcoder.js";
