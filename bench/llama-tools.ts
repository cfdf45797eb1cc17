import { buildTools } from "../scripts/build/tools.js";

/** A sentence if llama.cpp's programs are no peers, since the addon may not use all of this processor's instructions. */
export function noPeer(env = process.env): string | undefined {
  const { TAPLINE_LEVEL: level } = env;
  if (level === undefined) return undefined;
  return `llama.cpp's programs are compiled for this processor, and the addon's level is ${level}: unset TAPLINE_LEVEL to compare them.`;
}

/** llama.cpp's programs, compiled from tapline's source. @throws Error where they are no peers */
export async function llamaTools(names: string[]): Promise<Record<string, string>> {
  const why = noPeer();
  if (why !== undefined) throw new Error(why);
  return buildTools(names);
}
