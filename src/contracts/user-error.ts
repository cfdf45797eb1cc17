/**
 * A failure that a person can act on: its message is one complete sentence, shown without a stack.
 * Everything else that is thrown is a fault of this program.
 */
export class UserError extends Error {
  override name = "UserError";
}
