/**
 * A failure that the user can act on: its message is one complete sentence, shown without a stack trace. Any other
 * error is a bug.
 */
export class UserError extends Error {
  override name = "UserError";
}

/** The port is taken. Callers that may choose a port try another one. */
export class PortInUse extends UserError {
  constructor(host: string, port: number) {
    super(
      `Port ${port} on ${host} is already in use; stop the program that uses it or choose another with --port.`,
    );
  }
}
