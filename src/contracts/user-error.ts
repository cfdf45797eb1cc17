/**
 * A failure that a person can act on: its message is one complete sentence, shown without a stack.
 * Everything else that is thrown is a fault of this program.
 */
export class UserError extends Error {
  override name = "UserError";
}

/** Another program listens where this one was told to: whoever may choose the port itself takes another. */
export class PortInUse extends UserError {
  constructor(host: string, port: number) {
    super(
      `Port ${port} on ${host} is already in use; stop the program that holds it or choose another with --port.`,
    );
  }
}
