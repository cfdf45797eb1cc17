import { Argument, type Command, type Option } from "commander";
import type { CompletedCommand } from "./completion-scripts.js";

/** `tapline completion`: a shell script, generated from the registered commands. */
export function registerCompletion(program: Command): void {
  program
    .command("completion")
    .description("Print a shell completion script.")
    .addArgument(new Argument("<shell>", "shell to generate for").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      `
Examples:
  tapline completion bash > ~/.local/share/bash-completion/completions/tapline
  tapline completion zsh > "\${fpath[1]}/_tapline"
  tapline completion fish > ~/.config/fish/completions/tapline.fish`,
    )
    .action(async (shell: "bash" | "zsh" | "fish") => {
      const [{ scripts }, { print }] = await Promise.all([
        import("./completion-scripts.js"),
        import("../output.js"),
      ]);
      await print(scripts[shell](commandsOf(program)));
    });
}

/** Every command of a program, depth first. */
export function commandsOf(command: Command, path: string[] = []): CompletedCommand[] {
  const help = command.createHelp();
  // Includes commander's help command and option.
  const children = help.visibleCommands(command);
  const own: CompletedCommand = {
    path,
    subcommands: children.map((child) => ({ name: child.name(), description: child.description() })),
    options: help.visibleOptions(command).map(completedOption),
    words: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
  };
  return [
    own,
    ...children
      .filter((child) => child.name() !== "help")
      .flatMap((child) => commandsOf(child, [...path, child.name()])),
  ];
}

function completedOption(option: Option): CompletedCommand["options"][0] {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
  };
}
