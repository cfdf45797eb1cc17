import { buildTools } from "../scripts/build/tools.js";

/** A sentence if the addon is held at a lower level than llama.cpp's programs, which use all of this processor's instructions. */
export function levelFault(env = process.env): string | undefined {
  const { TAPLINE_LEVEL: level } = env;
  if (level === undefined) return undefined;
  return `llama.cpp's programs are compiled for this processor, and the addon's level is ${level}: unset TAPLINE_LEVEL to compare them.`;
}

/** llama.cpp's programs, compiled from tapline's source. @throws Error if the addon is held at a lower level */
export async function llamaTools(names: string[]): Promise<Record<string, string>> {
  const fault = levelFault();
  if (fault !== undefined) throw new Error(fault);
  return buildTools(names);
}
