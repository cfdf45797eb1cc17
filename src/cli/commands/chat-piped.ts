import { createInterface } from "node:readline";
import { AnswerWriter, canvasOf, colorsOf } from "../../terminal/index.js";
import type { ChatSession } from "./chat-session.js";

/**
 * A chat whose lines come from a file or a pipe: each is a message or a command, and is answered before the next
 * is read. Standard output gets only the answers, and the thinking if it is a terminal.
 * Stops asking when the reader of the answers is gone.
 * @throws TaplineError, TimeoutError, the signal's reason
 */
export async function pipedChat(session: ChatSession, signal: AbortSignal): Promise<void> {
  const { stdin, stdout, stderr } = process;
  const unread = new AbortController();
  stdout.once("error", () => unread.abort());
  const ended = AbortSignal.any([signal, unread.signal]);
  const lines = createInterface({ input: stdin, signal: ended, terminal: false });
  for await (const line of lines) {
    const text = line.trim();
    if (text === "") continue;
    const reply = session.command(text);
    if (reply === "exit") break;
    if (reply !== undefined) {
      stderr.write(`${reply.text}\n`);
      continue;
    }
    const writer = new AnswerWriter(stdout, {
      colors: colorsOf(stdout),
      thinking: stdout.isTTY === true,
      watch: session.watch,
    });
    const turn = await session.say(text, writer, ended);
    writer.end();
    const summary = writer.summary(canvasOf(stdout).width);
    if (summary !== "") stderr.write(`${summary}\n`);
    if (turn.kind === "stopped") break;
  }
  lines.close();
  signal.throwIfAborted();
}
