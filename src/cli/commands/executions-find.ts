import type { Transport } from "../../client/transport.js";
import type { Execution, ExecutionList } from "../../contracts/execution.js";
import { UserError } from "../../contracts/user-error.js";

/**
 * A request that a server remembers.
 * @param name its id, the id's beginning, or `last`: the newest that has ended
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
        ? `The server remembers no request ${name}; it keeps the last ones only.`
        : `${found.length} requests begin with ${name}.`,
    );
  }
  return http.json<Execution>(`/executions/${one.id}`);
}
