import type { ServingEvent } from "../../inference/process/supervisor.js";
import { ProgressLine } from "../../terminal/index.js";
import { downloadLine } from "../download-line.js";

/**
 * Reports a server's events, as text or with `json` as JSON lines: progress while it downloads or loads (on a terminal
 * only), one line when it is ready, one for each restart.
 */
export function serveReport(json: boolean, model: string): { event: (event: ServingEvent) => void } {
  if (json) return { event: jsonLine };
  const line = new ProgressLine(process.stderr);
  const downloading = downloadLine(line);
  const clear = () => line.clear();
  return {
    event(event) {
      switch (event.event) {
        case "loading":
          if (event.download !== undefined) downloading(event.download);
          else line.show(`loading ${model}: ${Math.round(event.fraction * 100)} %`);
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
          process.stderr.write(`tapline: ${event.sentence} Restarting it.\n`);
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
