import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as PreviousClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as PreviousTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { program } from "../support/program.js";

/** How `tapline mcp` is started from its sources. */
export function command(words: string[]): { command: string; args: string[] } {
  return { command: process.execPath, args: [...program, "mcp", ...words] };
}

export interface ToolInfo {
  name: string;
  description?: string;
  inputSchema: { type: string; [name: string]: unknown };
  outputSchema?: { [name: string]: unknown };
  annotations?: { [name: string]: unknown };
}

export interface ToolResult {
  isError?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  structuredContent?: any;
  content: { type: string; text: string }[];
}

export interface Session {
  tools(): Promise<ToolInfo[]>;
  call(name: string, input?: object): Promise<ToolResult>;
  instructions(): string | undefined;
  protocol(): string | undefined;
  stderr(): string;
  close(): Promise<void>;
}

/** The clients' own is a minute, which a process may need to start on a busy machine. */
const patience = { timeout: 300_000 };

/** The official client on the newest revision, the same on the one before, and the SDK before it. */
export const clients = ["current", "current, 2025", "previous"] as const;
export type ClientKind = (typeof clients)[number];

/** `tapline mcp …` in a separate process, with an official client. */
export async function open(
  kind: ClientKind,
  words: string[],
  environment: Record<string, string | undefined> = {},
): Promise<Session> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...process.env, ...environment })) {
    if (value !== undefined) env[name] = value;
  }
  const parameters = { ...command(words), env, stderr: "pipe" as const };
  const info = { name: "test", version: "1.0.0" };
  let stderr = "";
  const listen = (stream: { on(event: "data", heard: (part: unknown) => void): unknown } | null) => {
    stream?.on("data", (part) => {
      stderr += String(part);
    });
  };
  if (kind === "previous") {
    const client = new PreviousClient(info);
    const transport = new PreviousTransport(parameters);
    listen(transport.stderr);
    await client.connect(transport, patience);
    return {
      tools: async () => (await client.listTools(undefined, patience)).tools as ToolInfo[],
      call: async (name, input = {}) =>
        (await client.callTool({ name, arguments: input as never }, undefined, patience)) as ToolResult,
      instructions: () => client.getInstructions(),
      protocol: () => undefined,
      stderr: () => stderr,
      close: () => client.close(),
    };
  }
  const client = new Client(info, {
    versionNegotiation: { mode: kind === "current" ? "auto" : "legacy" },
  });
  const transport = new StdioClientTransport(parameters);
  listen(transport.stderr as never);
  await client.connect(transport, patience);
  return {
    tools: async () => (await client.listTools(undefined, patience)).tools as ToolInfo[],
    call: async (name, input = {}) =>
      (await client.callTool({ name, arguments: input as never }, patience)) as ToolResult,
    instructions: () => client.getInstructions(),
    protocol: () => client.getNegotiatedProtocolVersion(),
    stderr: () => stderr,
    close: () => client.close(),
  };
}

/** The data between a text's fences; throws where there is not exactly one fence around everything. */
export function unfence(text: string): { preface: string; data: unknown; nonce: string } {
  const lines = text.split("\n");
  const begin = lines.findIndex((line) => /^-{5} untrusted data [0-9a-f]{32} begins -{5}$/.test(line));
  const nonce = /[0-9a-f]{32}/.exec(lines[begin] ?? "")?.[0];
  if (nonce === undefined) throw new Error(`no fence begins: ${text.slice(0, 200)}`);
  const end = `----- untrusted data ${nonce} ends -----`;
  if (lines.at(-1) !== end) throw new Error("the fence does not end the text");
  const payload = lines.slice(begin + 1, -1);
  if (payload.some((line) => line.includes(nonce))) throw new Error("the nonce stands inside the fence");
  if (lines.slice(0, begin).some((line) => line.includes(nonce)))
    throw new Error("the nonce stands before it");
  return { preface: lines.slice(0, begin).join("\n"), data: JSON.parse(payload.join("\n")), nonce };
}
