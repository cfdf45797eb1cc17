import type { Command } from "commander";
import { researchEnvironment as names } from "../../contracts/research.js";
import { claimStdout } from "../../mcp/stdout.js";
import { UsageError } from "../exit-code.js";
import { labOption, serverOption, usualLab } from "../service-address.js";
import { stopSignal } from "../stop-signal.js";

interface LabOptions {
  lab?: string;
  url: string;
  artifacts?: string;
}

/** `tapline mcp`: tools for agents over stdin and stdout, without opening a port. */
export function registerMcp(program: Command): void {
  const mcp = program
    .command("mcp")
    .description("MCP server over stdio: gives an agent tools. Started by the agent's host application.");
  mcp
    .command("research")
    .description(
      "Tools for studies: list_studies, get_study, get_discussion and, if allowed, save_private_draft.",
    )
    .addHelpText(
      "after",
      `
Environment:
  ${names.url}           https address of the studies service
  ${names.token}         token from its "Agent access" page
  ${names.caFile}       PEM file to trust instead of the system's CAs
  ${names.allowDrafts}  1 adds save_private_draft; the token needs
                               the scope drafts:write`,
    )
    .action(runResearch);
  mcp
    .command("lab")
    .description(
      "Tools for experiments: lab_health, lab_jobs, lab_job, lab_submit, lab_cancel, lab_artifacts, serving_…",
    )
    .addOption(labOption())
    .addOption(serverOption())
    .option(
      "--artifacts <folder>",
      "folder into which lab_artifacts may download (default: downloads disabled)",
    )
    .action(runLab);
}

async function runResearch(): Promise<void> {
  const protocol = claimStdout();
  const stopped = stopSignal();
  const [{ ResearchClient, ResearchError }, { mayDraft, researchServer, serveMcp }] = await Promise.all([
    import("../../client/index.js"),
    import("../../mcp/index.js"),
  ]);
  let client: InstanceType<typeof ResearchClient>;
  try {
    client = new ResearchClient();
  } catch (error) {
    throw error instanceof ResearchError ? new UsageError(error.message) : error;
  }
  const drafts = mayDraft(client, process.env[names.allowDrafts], (why) =>
    process.stderr.write(`tapline mcp: no save_private_draft: ${why}\n`),
  );
  await serveMcp(async () => researchServer(client, { drafts: await drafts }), protocol, stopped);
}

async function runLab(options: LabOptions): Promise<void> {
  const protocol = claimStdout();
  const stopped = stopSignal();
  const [{ Lab, ServingModel }, { labServer, serveMcp }] = await Promise.all([
    import("../../client/index.js"),
    import("../../mcp/index.js"),
  ]);
  const labUrl = options.lab ?? usualLab;
  const { hostname, origin } = new URL(options.url);
  if (!["localhost", "127.0.0.1", "[::1]"].includes(hostname)) {
    throw new UsageError(`--url must be a server on this machine, got ${hostname}.`);
  }
  const tools = {
    lab: new Lab(labUrl),
    labUrl,
    serving: new ServingModel(origin),
    artifacts: options.artifacts ?? null,
  };
  await serveMcp(() => labServer(tools), protocol, stopped);
}
