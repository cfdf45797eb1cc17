import { shellText } from "../../text/shell.js";

/** One command as shells complete it, from commander's tree. */
export interface CompletedCommand {
  /** Words after `tapline`; empty for tapline itself. */
  path: string[];
  subcommands: Array<{ name: string; description: string }>;
  options: Array<{ flags: string[]; description: string; takesValue: boolean; choices: string[] }>;
  /** Words accepted as an argument. */
  words: string[];
}

/** Completes file names by default: models, configurations and examples are files. */
export const scripts: Record<"bash" | "zsh" | "fish", (commands: CompletedCommand[]) => string> = {
  bash,
  zsh,
  fish,
};

function list(words: string[]): string {
  return shellText(words.join(" "));
}

const flagsOf = ({ options }: CompletedCommand) => options.flatMap(({ flags }) => flags);
const valueFlags = ({ options }: CompletedCommand) =>
  options.filter(({ takesValue }) => takesValue).flatMap(({ flags }) => flags);

function bash(commands: CompletedCommand[]): string {
  const cases = commands.map((command) => {
    const choices = command.options
      .filter((option) => option.choices.length > 0)
      .map(
        ({ flags, choices: words }) =>
          `        ${flags.join("|")}) COMPREPLY=($(compgen -W ${list(words)} -- "$word")); return ;;`,
      );
    const values = valueFlags(command);
    return `    ${shellText(command.path.join(" "))})
      case "$before" in
${choices.map((line) => `${line}\n`).join("")}${values.length === 0 ? "" : `        ${values.join("|")}) COMPREPLY=($(compgen -f -- "$word")); return ;;\n`}      esac
      words=${list([...command.subcommands.map(({ name }) => name), ...command.words])}
      flags=${list(flagsOf(command))} ;;`;
  });
  const parents = commands.filter(({ subcommands }) => subcommands.length > 0);
  const descents = parents.flatMap(({ path, subcommands }) =>
    subcommands.map(({ name }) => `      ${shellText([...path, name].join(" "))}) path=$next ;;`),
  );
  return `# Completion of tapline for bash.
_tapline() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} path='' next words flags index
  for ((index = 1; index < COMP_CWORD; index++)); do
    next="\${path:+$path }\${COMP_WORDS[index]}"
    case "$next" in
${descents.join("\n")}
    esac
  done
  COMPREPLY=()
  case "$path" in
${cases.join("\n")}
  esac
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$word"))
  else COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _tapline tapline
`;
}

/** One function per command: `_arguments` handles options and arguments. */
function zsh(commands: CompletedCommand[]): string {
  const functions = commands.map((command) => {
    const options = command.options.flatMap(({ flags, description, takesValue, choices }) => {
      const meaning = `[${inBrackets(description)}]`;
      const value = takesValue
        ? choices.length > 0
          ? `:value:(${choices.join(" ")})`
          : ":value:_files"
        : "";
      return flags.map((flag) => `    ${shellText(`${flag}${meaning}${value}`)} \\`);
    });
    if (command.subcommands.length === 0) {
      const rest = command.words.length > 0 ? `*:argument:(${command.words.join(" ")})` : "*:file:_files";
      return `${nameOf(command)}() {
  _arguments -s \\
${options.join("\n")}
    ${shellText(rest)}
}`;
    }
    const described = command.subcommands.map(
      ({ name, description }) => `    ${shellText(`${name}:${description.replaceAll(":", "\\:")}`)}`,
    );
    const called = command.subcommands
      .filter(({ name }) => name !== "help")
      .map(
        ({ name }) =>
          `        ${name}) _tapline${[...command.path, name].map((word) => `_${word}`).join("")} ;;`,
      );
    return `${nameOf(command)}() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands=(
${described.join("\n")}
  )
  _arguments -C \\
${options.join("\n")}
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
${called.join("\n")}
      esac ;;
  esac
}`;
  });
  return `#compdef tapline
# Completion of tapline for zsh.
${functions.join("\n")}
if [[ $funcstack[1] == _tapline ]]; then _tapline "$@"; else compdef _tapline tapline; fi
`;
}

function nameOf({ path }: CompletedCommand): string {
  return ["_tapline", ...path].join("_");
}

function inBrackets(text: string): string {
  return text.replace(/[[\]:\\]/g, "\\$&");
}

function fish(commands: CompletedCommand[]): string {
  const lines = commands.flatMap((command) => {
    const here = condition(command);
    const say = (rest: string) => `complete -c tapline -n ${shellText(here)} ${rest}`;
    return [
      ...command.subcommands.map(({ name, description }) =>
        say(`-f -a ${shellText(name)} -d ${shellText(description)}`),
      ),
      ...(command.words.length > 0 ? [say(`-f -a ${list(command.words)}`)] : []),
      ...command.options.map(({ flags, description, takesValue, choices }) => {
        const names = flags
          .map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
          .join(" ");
        const value = !takesValue ? "" : choices.length > 0 ? ` -x -a ${list(choices)}` : " -r";
        return say(`${names}${value} -d ${shellText(description)}`);
      }),
    ];
  });
  return `# Completion of tapline for fish.
${lines.join("\n")}
`;
}

/** The position of a command's words: after its own name, and before that of any subcommand. */
function condition({ path, subcommands }: CompletedCommand): string {
  const names = subcommands.map(({ name }) => name).join(" ");
  const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`);
  if (path.length === 0) return `not __fish_seen_subcommand_from ${names}`;
  return [...seen, ...(names === "" ? [] : [`not __fish_seen_subcommand_from ${names}`])].join("; and ");
}
