import {
  type CallToolResult,
  fromJsonSchema,
  type jsonSchemaValidator,
  type McpServer,
} from "@modelcontextprotocol/server";
import type { Static, TSchema } from "typebox";
import { InvalidInput, validate } from "../contracts/validate.js";
import { brief } from "./listed.js";
import { failed } from "./result.js";

export interface Tool<S extends TSchema> {
  name: string;
  title: string;
  description: string;
  input: S;
  /** The input schema for tools/list; default: `input` with short descriptions. Calls are validated against `input`. */
  listed?: TSchema;
  output: TSchema;
  /** Whether it changes nothing; default: not destructive. */
  readOnly?: boolean;
  /** Whether it may stop or delete something. */
  destructive?: boolean;
  /** Whether it reaches beyond this machine. */
  remote?: boolean;
  /** @param signal aborts if the client cancels the call or the connection closes */
  call(input: Static<S>, signal: AbortSignal): Promise<CallToolResult>;
}

/** Validates arguments with the services' error messages: field, allowed values, actual value. */
const sentences = (schema: TSchema): jsonSchemaValidator => ({
  getValidator:
    <T>() =>
    (input: unknown) => {
      try {
        validate(schema, input);
        return { valid: true, data: input as T, errorMessage: undefined };
      } catch (error) {
        if (!(error instanceof InvalidInput)) throw error;
        return { valid: false, data: undefined, errorMessage: error.message };
      }
    },
});

/** Adds a tool to a server. Errors become results for the model; internal errors also go to stderr. */
export function addTool<S extends TSchema>(server: McpServer, tool: Tool<S>): void {
  const { destructive = false, readOnly = !destructive, remote = false } = tool;
  server.registerTool(
    tool.name,
    {
      title: tool.title,
      description: tool.description,
      inputSchema: fromJsonSchema<Static<S>>(
        (tool.listed ?? brief(tool.input)) as object,
        sentences(tool.input),
      ),
      outputSchema: fromJsonSchema(tool.output as object),
      annotations: { readOnlyHint: readOnly, destructiveHint: destructive, openWorldHint: remote },
    },
    async (input, { mcpReq }) => {
      try {
        return await tool.call(input, mcpReq.signal);
      } catch (error) {
        if (mcpReq.signal.aborted) throw error;
        try {
          return failed(error);
        } catch (fault) {
          process.stderr.write(
            `tapline mcp: ${tool.name}: ${fault instanceof Error ? fault.stack : fault}\n`,
          );
          return {
            isError: true,
            content: [{ type: "text", text: `${tool.name} failed with an internal error.` }],
          };
        }
      }
    },
  );
}
