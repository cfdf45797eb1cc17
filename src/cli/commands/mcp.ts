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

/** `tapline mcp`: tools for agents, over stdin and stdout. No port is opened. */
export function registerMcp(program: Command): void {
  const mcp = program
    .command("mcp")
    .description("Offer tools to an agent over stdio (Model Context Protocol); started by the agent's host.");
  mcp
    .command("research")
    .description("list_studies, get_study, get_discussion and, where allowed, save_private_draft.")
    .addHelpText(
      "after",
      `
Environment:
  ${names.url}           https address of the studies service
  ${names.token}         token from its page Agent access
  ${names.caFile}       PEM file to trust, not the system's authorities
  ${names.allowDrafts}  1 adds save_private_draft; the token needs
                               the scope drafts:write`,
    )
    .action(runResearch);
  mcp
    .command("lab")
    .description(
      "lab_health, lab_jobs, lab_job, lab_submit, lab_cancel, lab_artifacts, serving_…: experiments.",
    )
    .addOption(labOption())
    .addOption(serverOption())
    .option("--artifacts <folder>", "where lab_artifacts may download to (default: nowhere)")
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
    throw new UsageError(`Only a model served on this machine can be looked into, not one on ${hostname}.`);
  }
  const tools = {
    lab: new Lab(labUrl),
    labUrl,
    serving: new ServingModel(origin),
    artifacts: options.artifacts ?? null,
  };
  await serveMcp(() => labServer(tools), protocol, stopped);
}
