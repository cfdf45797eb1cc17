/** Draws docs/images/parts.svg: who uses what, which services there are, and what runs the model. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  title: string;
  lines: readonly string[];
  /** Its class in the style sheet. */
  kind: "person" | "service" | "engine" | "disk";
}

const width = 980;
const height = 560;

const people = [
  ["Browser", "chat, steer, patch"],
  ["Terminal", "tapline inspect …"],
  ["Python", "tapline_lab"],
  ["TypeScript", "tapline/client"],
  ["Agents", "MCP tools"],
  ["OpenAI clients", "any language"],
] as const;

const gap = 16;
const personWidth = (width - 40 - gap * (people.length - 1)) / people.length;

const boxes: readonly Box[] = [
  ...people.map(
    ([title, line], place): Box => ({
      ...{ x: 20 + place * (personWidth + gap), y: 20, width: personWidth, height: 62 },
      ...{ title, lines: [line], kind: "person" },
    }),
  ),
  {
    ...{ x: 20, y: 130, width: 180, height: 128, kind: "service" },
    ...{ title: "workbench :8972", lines: ["a web page; starts", "serve and lab", "if needed"] },
  },
  {
    ...{ x: 224, y: 130, width: 230, height: 128, kind: "service" },
    ...{
      title: "lab :8980",
      lines: ["experiments as jobs", "on a separate copy of", "the model, saved on disk"],
    },
  },
  {
    ...{ x: 478, y: 130, width: 270, height: 128, kind: "service" },
    ...{
      title: "serve :8971",
      lines: ["OpenAI-style API; each request", "may edit and read activations", "while others continue"],
    },
  },
  {
    ...{ x: 772, y: 130, width: 188, height: 56, kind: "service" },
    ...{ title: "router :8970", lines: ["many servers"] },
  },
  {
    ...{ x: 772, y: 202, width: 188, height: 56, kind: "service" },
    ...{ title: "studies :8990", lines: ["published research"] },
  },
  {
    ...{ x: 224, y: 318, width: 524, height: 110, kind: "engine" },
    title: "native addon: llama.cpp with a tap on every block",
    lines: [
      "residual stream, attention, heads, MLP, experts: read, edit, logit lens",
      "probes and sparse dictionaries: train, encode, steer",
    ],
  },
  {
    ...{ x: 20, y: 318, width: 180, height: 110, kind: "disk" },
    ...{ title: "~/.tapline", lines: ["jobs and results;", "directions, probes,", "dictionaries, lenses"] },
  },
  {
    ...{ x: 224, y: 476, width: 524, height: 62, kind: "disk" },
    ...{ title: "a GGUF model, quantized or not", lines: ["a file, or the hub's shared cache"] },
  },
];

/** From the middle of one edge to another: x1, y1, x2, y2. */
const arrows: readonly (readonly [number, number, number, number])[] = [
  [85, 82, 85, 130],
  [245, 82, 300, 130],
  [404, 82, 360, 130],
  [450, 82, 530, 130],
  [565, 82, 600, 130],
  [720, 82, 660, 130],
  [780, 82, 850, 130],
  [890, 82, 890, 130],
  [200, 170, 224, 170],
  [772, 158, 748, 158],
  [339, 258, 339, 318],
  [613, 258, 613, 318],
  [300, 258, 150, 318],
  [486, 428, 486, 476],
];

const style = `
.page { fill: #ffffff; stroke: #d5dae3 }
text { fill: #1c2330; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
.title { font-weight: 650; font-size: 15px }
.line { fill: #4b5565 }
.person rect { fill: #f3f5f9; stroke: #b9c2d0 }
.service rect { fill: #e8f0ff; stroke: #5b83d6 }
.engine rect { fill: #fdeedc; stroke: #cf8a2e }
.disk rect { fill: #eef3ec; stroke: #7fa075 }
.arrow { stroke: #6c7686; stroke-width: 1.4; fill: none }
.head { fill: #6c7686 }
@media (prefers-color-scheme: dark) {
.page { fill: #161a22; stroke: #303846 }
text { fill: #e8ecf3 }
.line { fill: #b3bccb }
.person rect { fill: #222834; stroke: #4d586b }
.service rect { fill: #1a2a4a; stroke: #6f97e8 }
.engine rect { fill: #3b2a14; stroke: #d89a45 }
.disk rect { fill: #1f2c1d; stroke: #83a679 }
.arrow { stroke: #93a0b4 }
.head { fill: #93a0b4 }
}`;

const label =
  "The parts of tapline: browser, terminal, Python, TypeScript, agents and OpenAI clients use the services workbench, lab, serve, router and studies; lab and serve run a GGUF model in a native addon, llama.cpp with a tap on every block; jobs and saved directions are in ~/.tapline.";

function drawn({ x, y, width: w, height: h, title, lines, kind }: Box): string {
  const top = y + (h - (lines.length + 1) * 19) / 2 + 15;
  const texts = [title, ...lines].map(
    (text, row) =>
      `<text class="${row === 0 ? "title" : "line"}" x="${round(x + w / 2)}" y="${round(top + row * 19)}" text-anchor="middle">${text}</text>`,
  );
  return `<g class="${kind}"><rect x="${round(x)}" y="${y}" width="${round(w)}" height="${h}" rx="8"/>${texts.join("")}</g>`;
}

const round = (number: number) => Math.round(number * 10) / 10;

/** The picture as SVG; its colors follow the reader's light or dark setting. */
export function partsPicture(): string {
  const lines = arrows.map(
    ([x1, y1, x2, y2]) =>
      `<line class="arrow" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" marker-end="url(#head)"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}">
<style>${style}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>
<rect class="page" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="10"/>
${[...lines, ...boxes.map(drawn)].join("\n")}
</svg>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(fileURLToPath(new URL("../../docs/images/parts.svg", import.meta.url)), partsPicture());
}
