import { createInterface } from "node:readline";
import type { ReadStream, WriteStream } from "node:tty";
import { AnswerWriter, bold, canvasOf, colorsOf, dim, harmless } from "../../terminal/index.js";
import { sentenceOf } from "../exit-code.js";
import { KeyGate, lineBreak, markPastes } from "./chat-key-gate.js";
import type { ChatSession } from "./chat-session.js";

/** How a chat ended: by Ctrl-D or /exit, or by a signal. */
export type Ending = "done" | NodeJS.Signals;

/**
 * A chat with a person at a terminal. Ctrl-C stops the answer in progress, or clears the line; pressed again, it
 * ends the chat. Text typed while an answer arrives is buffered.
 */
export class TerminalChat {
  readonly #session: ChatSession;
  readonly #output: WriteStream;
  readonly #gate = new KeyGate(() => this.interrupt("SIGINT"));
  readonly #colors;
  /** Number of Ctrl-C since the last line. */
  #interrupts = 0;
  #answering: AbortController | undefined;
  /** The line being handled, followed by waiting lines. */
  readonly #lines: string[] = [];
  /** Lines that are continued on the next. */
  #earlier: string[] = [];
  #end!: (how: Ending) => void;
  readonly #ended = new Promise<Ending>((resolve) => {
    this.#end = resolve;
  });

  constructor(session: ChatSession, output: WriteStream) {
    this.#session = session;
    this.#output = output;
    this.#colors = colorsOf(output);
  }

  async run(input: ReadStream): Promise<Ending> {
    // A closed terminal reads as an end or an error, perhaps before its signal arrives.
    const gone = () => this.#end("SIGHUP");
    for (const stream of [input, this.#output]) stream.on("error", gone);
    input.on("end", gone);
    const source = Object.assign(input.pipe(this.#gate), {
      isTTY: true,
      setRawMode: (on: boolean) => input.setRawMode(on),
    });
    const editor = createInterface({
      input: source,
      output: this.#output,
      terminal: true,
      historySize: 1000,
    });
    const prompt = () => {
      editor.setPrompt(bold(this.#earlier.length === 0 ? "> " : "… ", this.#colors));
      editor.prompt();
    };
    editor.on("line", (line) => {
      this.#interrupts = 0;
      this.#lines.push(line);
      if (this.#lines.length === 1) void this.#readLines();
    });
    editor.on("SIGINT", () => this.interrupt("SIGINT"));
    editor.on("close", () => this.#end("done"));
    this.#clearLine = () => {
      this.#earlier = [];
      editor.write(null, { ctrl: true, name: "e" });
      editor.write(null, { ctrl: true, name: "u" });
    };
    this.#prompt = prompt;
    this.#output.write(markPastes.on);
    prompt();
    const how = await this.#ended;
    this.#answering?.abort();
    this.#output.write(`${markPastes.off}\n`);
    input.unpipe(this.#gate);
    editor.close();
    input.pause();
    return how;
  }

  /** Handles the waiting lines one after the other: several may have arrived together. */
  async #readLines(): Promise<void> {
    this.#gate.hold();
    for (let line = this.#lines[0]; line !== undefined; line = this.#lines[0]) {
      if (line.endsWith("\\")) {
        this.#earlier.push(line.slice(0, -1));
      } else {
        const text = [...this.#earlier, line].join("\n").replaceAll(lineBreak, "\n").trim();
        this.#earlier = [];
        if (text !== "" && !(await this.#handle(text))) return this.#end("done");
      }
      this.#lines.shift();
    }
    this.#prompt();
    this.#gate.release();
  }

  #prompt = () => {};
  #clearLine = () => {};

  /** Handles Ctrl-C, as a key or a signal; any other signal ends the chat. */
  interrupt(signal: NodeJS.Signals): void {
    this.#interrupts++;
    if (signal !== "SIGINT" || this.#interrupts > 1) {
      this.#end(signal);
    } else if (this.#answering !== undefined) {
      // Lines typed ahead were meant to follow the answer that was stopped.
      this.#lines.splice(1);
      this.#answering.abort();
    } else {
      this.#clearLine();
      this.#tell("Press Ctrl-C again or Ctrl-D to end the chat.");
      this.#prompt();
    }
  }

  /** @returns whether the chat continues */
  async #handle(text: string): Promise<boolean> {
    const reply = this.#session.command(text);
    if (reply === "exit") return false;
    if (reply !== undefined) {
      this.#tell(reply.text);
      return true;
    }
    this.#answering = new AbortController();
    const writer = new AnswerWriter(this.#output, {
      colors: this.#colors,
      thinking: true,
      watch: this.#session.watch,
    });
    try {
      const turn = await this.#session.say(text, writer, this.#answering.signal);
      writer.end();
      const summary = writer.summary(canvasOf(this.#output).width);
      if (summary !== "") this.#output.write(`${summary}\n`);
      if (turn.kind === "stopped") {
        this.#tell(
          turn.kept
            ? "Stopped; the partial answer stays in the conversation."
            : "Stopped; the question was discarded.",
        );
      } else if (turn.cutAtLimit) {
        this.#tell("The answer was cut off at the token limit.");
      }
    } catch (error) {
      writer.end();
      this.#tell(`${sentenceOf(error)} The message was discarded.`);
    } finally {
      this.#answering = undefined;
    }
    return true;
  }

  #tell(text: string): void {
    const lines = harmless(text).split("\n");
    this.#output.write(`${lines.map((line) => dim(line, this.#colors)).join("\n")}\n`);
  }
}
