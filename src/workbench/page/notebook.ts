/** A session as a Jupyter notebook (nbformat 4.5): each job's title, note and findings, and the code that repeats it. */
import { literal } from "./scripts.js";

/** What a notebook shows of a job. */
export interface NotebookJob {
  id: string;
  title: string;
  note?: string | undefined;
  config: Record<string, unknown>;
  /** Sentences of the result. */
  summary: readonly string[];
}

/** @param lab the Lab's address */
export function notebookOf(title: string, lab: string, jobs: readonly NotebookJob[]): string {
  const cells = [
    markdown(
      "head",
      `# ${escaped(title)}\n\nWritten by tapline's workbench. It needs \`pip install tapline-lab\` and a running \`tapline lab\`.`,
    ),
    code("setup", `from tapline_lab import Lab\n\nlab = Lab(${literal(lab)})`),
    ...jobs.flatMap(({ id, title, note, config, summary }) => {
      const { operation, model, ...settings } = config;
      const short = id.slice(0, 8);
      const lines = [
        `## ${escaped(title)}`,
        ...(note === undefined ? [] : [escaped(note)]),
        ...summary.map(escaped),
        `Job \`${id}\`.`,
      ];
      const run = [
        `job_${short} = lab.submit(${literal(operation)}, ${literal(model)}, **${literal(settings)})`,
        `result_${short} = lab.wait(job_${short})["result"]`,
        `result_${short}["note"] if "note" in result_${short} else list(result_${short})`,
      ];
      return [markdown(`about-${short}`, lines.join("\n\n")), code(`run-${short}`, run.join("\n"))];
    }),
  ];
  const metadata = {
    kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
    language_info: { name: "python" },
  };
  return `${JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}

/** Text from prompts and models: not a word of it is Markdown or HTML. */
function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]<>()#+\-!|&$~]/g, "\\$&");
}

function markdown(id: string, source: string) {
  return { cell_type: "markdown", id, metadata: {}, source: linesOf(source) };
}

function code(id: string, source: string) {
  return { cell_type: "code", execution_count: null, id, metadata: {}, outputs: [], source: linesOf(source) };
}

/** The format's lines, each with its line end. */
function linesOf(source: string): string[] {
  return source.split(/(?<=\n)/);
}
