import { join, relative, sep } from "node:path";

/** An entry of CMake's compile_commands.json. */
export interface CompileCommand {
  directory: string;
  command: string;
  file: string;
}

/** A file of native/ and how another machine's compiler gets it. */
export interface Compilation {
  file: string;
  args: string[];
}

/** Parts of releases for Linux only. */
const linuxOnly = /^native[\\/](openmp[\\/]|levels[\\/]levels[.])/;
/** Definitions that ggml's CMake files make for this machine, and what only its own compiler knows. */
const foreign = /^-D(_GNU_SOURCE|_XOPEN_SOURCE=)/;
/** What decides over meaning and warnings; options of the processor and of optimization are the machine's. */
const portable = /^-(D|I|std=|f(no-)?(rtti|exceptions)|Wno-)/;
const llamaFolder = /^-I.*[\\/]llama\.cpp-/;
const withValue = new Set(["-isystem", "-include"]);

/**
 * The arguments of one command that mean the same elsewhere, with our warnings as errors; undefined for files that are
 * not ours.
 * @param output the object file
 */
export function compilation(
  { command, file }: CompileCommand,
  root: string,
  output: string,
): Compilation | undefined {
  const name = relative(root, file);
  if (!name.startsWith(`native${sep}`) || linuxOnly.test(name)) return undefined;
  const words = shellWords(command);
  const args: string[] = [];
  for (const [i, word] of words.entries()) {
    if (withValue.has(word)) args.push(word, words[i + 1] ?? "");
    // Warnings about their headers are not ours: files of native/products are compiled as ggml's.
    else if (llamaFolder.test(word)) args.push("-isystem", word.slice(2));
    else if (portable.test(word) && !foreign.test(word)) args.push(word);
  }
  return {
    file: name,
    args: [...args, "-O2", "-Wall", "-Wextra", "-Werror", "-c", join(root, name), "-o", output],
  };
}

/** Words of a command as CMake writes it: separated by spaces, quotes and spaces inside of words escaped or quoted. */
export function shellWords(command: string): string[] {
  const words = command.match(/(?:\\.|"(?:\\.|[^"\\])*"|[^\s"\\])+/g) ?? [];
  return words.map((word) =>
    word.replace(/"((?:\\.|[^"\\])*)"|\\(.)/g, (_, quoted?: string, single?: string) =>
      quoted === undefined ? (single ?? "") : quoted.replace(/\\(.)/g, "$1"),
    ),
  );
}
