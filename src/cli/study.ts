import type { Command } from "commander";

/** `tapline study`: published studies and private drafts of a studies service. */
export function registerStudy(program: Command): void {
  program.command("study").description("Read published studies and save private drafts, as an agent does.");
}
