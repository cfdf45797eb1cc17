/** The last part of a path or hub id, without the ending. */
export function shortModel(model: string): string {
  return (model.split(/[/\\]/).at(-1) ?? model).replace(/\.gguf$/, "");
}
