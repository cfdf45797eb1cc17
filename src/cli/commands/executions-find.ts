import type { Transport } from "../../client/transport.js";
import type { Execution, ExecutionList } from "../../contracts/execution.js";
import { UserError } from "../../contracts/user-error.js";

/**
 * A request recorded by a server.
 * @param name its id, a prefix of its id, or `last` for the newest finished one
 * @throws UserError
 */
export async function findExecution(http: Transport, name: string): Promise<Execution> {
  if (/^[0-9a-f]{32}$/.test(name)) return http.json<Execution>(`/executions/${name}`);
  const { executions } = await http.json<ExecutionList>("/executions");
  const ended = executions.filter(({ status }) => status !== "running");
  const found = name === "last" ? ended.slice(0, 1) : executions.filter(({ id }) => id.startsWith(name));
  const [one] = found;
  if (one === undefined || found.length > 1) {
    throw new UserError(
      one === undefined
        ? `The server has no record of request ${name}; it keeps only recent ones.`
        : `${found.length} requests start with ${name}.`,
    );
  }
  return http.json<Execution>(`/executions/${one.id}`);
}
