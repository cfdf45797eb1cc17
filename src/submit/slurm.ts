import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { UserError } from "../contracts/user-error.js";
import { shellWord } from "../text/shell.js";
import { type Engine, partCommands } from "./engine.js";
import { logOf, partsFolder, partsOf, type Submission } from "./submission.js";

const execute = promisify(execFile);

/** Runs one of Slurm's commands. @throws UserError with its last line */
async function slurm(command: string, args: readonly string[]): Promise<string> {
  try {
    return (await execute(command, [...args])).stdout;
  } catch (error) {
    const { code, stderr = "" } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === "ENOENT")
      throw new UserError(`${command} was not found: Slurm's commands are not on this machine.`);
    throw new UserError(`${command} failed: ${stderr.trim().split("\n").at(-1) || (error as Error).message}`);
  }
}

/** An array job: each part is a task of it. */
export function slurmEngine(program: readonly string[]): Engine {
  const scriptOf = (submission: Submission, copies = false) => {
    const [note, compute] = partCommands(submission, "SLURM_ARRAY_TASK_ID", { program, copies });
    return [
      "#!/bin/bash",
      `#SBATCH --job-name=tapline-${submission.id}`,
      // After a node failure, the part starts again and resumes after its finished files.
      "#SBATCH --requeue",
      "#SBATCH --open-mode=append",
      ...submission.engineOptions.map((option) => `#SBATCH ${option}`),
      note,
      `exec ${compute}`,
      "",
    ].join("\n");
  };
  const options = (submission: Submission, parts: readonly number[], copies = false) => [
    `--array=${parts.join(",")}%${submission.workers}`,
    `--output=${logOf(submission, "%a", copies)}`,
  ];
  return {
    script: (submission) =>
      `# sbatch ${options(submission, partsOf(submission)).map(shellWord).join(" ")} <this script>\n${scriptOf(submission)}`,
    async start(submission, parts, copies = false) {
      const path = join(partsFolder(submission), copies ? "extract-copy.sbatch" : "extract.sbatch");
      await writeFile(path, scriptOf(submission, copies), { mode: 0o700 });
      const said = await slurm("sbatch", ["--parsable", ...options(submission, parts, copies), path]);
      return (said.trim().split(";")[0] as string).trim();
    },
    active: async (submission) => new Set(await tasksOf(submission)),
    busy: async (submission) => (await tasksOf(submission)).length,
    async stop({ batches }, parts) {
      for (const { handle, parts: own } of batches) {
        const tasks =
          parts === undefined
            ? [handle]
            : own.filter((part) => parts.includes(part)).map((part) => `${handle}_${part}`);
        if (tasks.length > 0) await slurm("scancel", ["--quiet", ...tasks]);
      }
    },
  };
}

/** The parts of all tasks that are waiting or running. */
async function tasksOf({ batches }: Pick<Submission, "batches">): Promise<number[]> {
  const parts: number[] = [];
  for (const { handle } of batches) {
    // Slurm forgets jobs that ended a while ago; asking for one is not an error then.
    const said = await slurm("squeue", ["--noheader", "--array", `--jobs=${handle}`, "--format=%K"]).catch(
      (error: Error) => {
        if (/Invalid job id/i.test(error.message)) return "";
        throw error;
      },
    );
    for (const line of said.split("\n")) if (/^\s*\d+\s*$/.test(line)) parts.push(Number(line));
  }
  return parts;
}
