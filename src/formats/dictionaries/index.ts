export { dictionaryFiles, filesBeside } from "./choose.js";
export type { Activation, Dictionary, DictionaryOrigin, RowScaling, TensorSource } from "./dictionary.js";
export { type LayoutFiles, layouts, readDictionary } from "./read.js";
export type { RowStream } from "./row-stream.js";
export { transcoderBetween } from "./transcoder.js";
