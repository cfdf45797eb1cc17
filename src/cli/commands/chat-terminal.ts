import { createInterface } from "node:readline";
import type { ReadStream, WriteStream } from "node:tty";
import { AnswerWriter, bold, canvasOf, colorsOf, dim, harmless } from "../../terminal/index.js";
import { sentenceOf } from "../exit-code.js";
import { KeyGate, lineBreak, markPastes } from "./chat-key-gate.js";
import type { ChatSession } from "./chat-session.js";

/** How a chat ended: by Ctrl-D or /exit, or by a signal. */
export type Ending = "done" | NodeJS.Signals;

/**
 * A chat with a person at a terminal. Ctrl-C stops the answer in progress, or empties the line; once more, it
 * ends the chat. What is typed while an answer arrives waits until it is there.
 */
export class TerminalChat {
  readonly #session: ChatSession;
  readonly #output: WriteStream;
  readonly #gate = new KeyGate(() => this.interrupt("SIGINT"));
  readonly #colors;
  /** Ctrl-C since the last line. */
  #interrupts = 0;
  #answering: AbortController | undefined;
  /** The line that is being handled, and those that wait. */
  readonly #lines: string[] = [];
  /** Lines that go on in the next. */
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
    // A terminal that is gone reads as an end or an error, perhaps before its signal arrives.
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

  /** Handles the lines that wait, one after the other: several may have arrived at once. */
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

  /** What Ctrl-C does, however it arrives; any other signal ends the chat. */
  interrupt(signal: NodeJS.Signals): void {
    this.#interrupts++;
    if (signal !== "SIGINT" || this.#interrupts > 1) {
      this.#end(signal);
    } else if (this.#answering !== undefined) {
      // What was typed ahead was meant for an answer that does not come.
      this.#lines.splice(1);
      this.#answering.abort();
    } else {
      this.#clearLine();
      this.#tell("Ctrl-C once more ends the chat, and so does Ctrl-D.");
      this.#prompt();
    }
  }

  /** @returns whether the chat goes on */
  async #handle(text: string): Promise<boolean> {
    const reply = this.#session.command(text);
    if (reply === "exit") return false;
    if (reply !== undefined) {
      this.#tell(reply.tell);
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
          turn.kept ? "Stopped; what was said so far is kept." : "Stopped; the question is forgotten.",
        );
      } else if (turn.cutAtLimit) {
        this.#tell("The answer ends at its token limit.");
      }
    } catch (error) {
      writer.end();
      this.#tell(`${sentenceOf(error)} The message is not kept.`);
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
