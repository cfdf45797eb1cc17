import { Argument, type Command, type Option } from "commander";
import type { CompletedCommand } from "./completion-scripts.js";

/** `tapline completion`: a script for a shell, made from the commands that there are. */
export function registerCompletion(program: Command): void {
  program
    .command("completion")
    .description("Print a completion script for a shell.")
    .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
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

/** Every command of a program with its words, depth first. */
export function commandsOf(command: Command, path: string[] = []): CompletedCommand[] {
  const help = command.createHelp();
  // Commander's own help command and help option are among the visible ones.
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
