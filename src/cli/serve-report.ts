import type { ServingEvent } from "../inference/process/supervisor.js";

/**
 * Tells a person, or with `json` a program, what a server does: progress while it loads (in a terminal only),
 * one line when it is ready, one for each restart.
 */
export function serveReport(json: boolean, model: string): { event: (event: ServingEvent) => void } {
  if (json) return { event: jsonLine };
  const terminal = process.stderr.isTTY === true;
  let progressShown = false;
  const clear = () => {
    if (progressShown) process.stderr.write("\r\x1b[K");
    progressShown = false;
  };
  return {
    event(event) {
      switch (event.event) {
        case "loading":
          if (!terminal) return;
          process.stderr.write(
            `\r\x1b[K${event.stage === "download" ? "downloading" : "loading"} ${model}: ` +
              `${Math.round(event.fraction * 100)} %`,
          );
          progressShown = true;
          return;
        case "ready": {
          clear();
          const { info } = event;
          process.stdout.write(
            `tapline serve is ready at ${event.url} (${info.id}, ${info.architecture} ${info.quantization}, on ` +
              `${event.backend}, ${info.slots} ${info.slots === 1 ? "slot" : "slots"} of ${info.slotContext} tokens)\n`,
          );
          return;
        }
        case "warning":
          clear();
          process.stderr.write(`tapline: ${event.sentence}\n`);
          return;
        case "crashed":
          clear();
          process.stderr.write(`tapline: ${event.sentence} It is started again.\n`);
          return;
        case "fault":
          clear();
          process.stderr.write(`${event.line}\n`);
      }
    },
  };
}

function jsonLine(event: ServingEvent): void {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`);
}
