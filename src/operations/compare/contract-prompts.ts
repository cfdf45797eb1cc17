/** The prompts of a comparison: `prompts`, or the one `prompt`. */
export function promptsOf({ prompt, prompts }: { prompt?: string; prompts?: string[] }): string[] {
  return prompts ?? (prompt === undefined ? [] : [prompt]);
}
