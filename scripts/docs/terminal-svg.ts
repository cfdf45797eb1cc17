import { width } from "../../src/findings/text.js";

/** Colours of the drawn terminal window: its own dark card, so that it reads on light and dark pages alike. */
const theme = {
  background: "#12151c",
  border: "#3a4150",
  text: "#d7dce5",
  dim: "#8b95a7",
  bar: "#1b202a",
  buttons: ["#f2665c", "#f4bd4f", "#5fc454"],
};
const cell = { width: 8.4, height: 19, font: 14 };
const padding = 18;
const titleBar = 34;

interface Look {
  color: string;
  background: string | null;
  bold: boolean;
}

/**
 * Draws terminal output (truecolor SGR codes, no cursor movement) as an SVG picture of a terminal window.
 * Every character is drawn at its own column whatever font the viewer has; block elements become rectangles, so
 * that bars have no seams.
 */
export function terminalSvg(output: string, options: { columns: number; title: string }): string {
  const lines = output.replace(/\n$/, "").split("\n");
  const total = { width: options.columns * cell.width + 2 * padding, height: 0 };
  total.height = lines.length * cell.height + padding + titleBar + 6;
  const shapes: string[] = [];
  const texts: string[] = [];
  lines.forEach((line, row) => {
    const top = titleBar + 6 + row * cell.height;
    let column = 0;
    for (const { text, look } of runs(line)) {
      const x = (columns: number) => padding + columns * cell.width;
      if (look.background !== null) {
        shapes.push(rect(x(column), top, width(text) * cell.width + 0.3, cell.height + 0.3, look.background));
      }
      for (const piece of text.split(/(█*[▏▎▍▌▋▊▉]|█+|\s{2,})/u).filter((part) => part !== "")) {
        const eighths = [...piece].reduce((sum, character) => sum + 1 + "▏▎▍▌▋▊▉█".indexOf(character), 0);
        if (/^[▏▎▍▌▋▊▉█]+$/u.test(piece)) {
          shapes.push(rect(x(column), top + 3, (eighths / 8) * cell.width, cell.height - 6, look.color));
        } else if (piece.trim() !== "") {
          texts.push(glyphs(piece, x(column), top + 14, look));
        }
        column += width(piece);
      }
    }
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${n(total.width)} ${n(total.height)}" width="${n(total.width)}" height="${n(total.height)}" role="img" aria-label="${escapeXml(options.title)}">
<rect x="0.5" y="0.5" width="${n(total.width - 1)}" height="${n(total.height - 1)}" rx="9" fill="${theme.background}" stroke="${theme.border}"/>
${theme.buttons.map((fill, index) => `<circle cx="${20 + index * 18}" cy="17" r="5.5" fill="${fill}"/>`).join("")}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${cell.font}" fill="${theme.text}" xml:space="preserve">
<text x="${n(total.width / 2)}" y="22" text-anchor="middle" fill="${theme.dim}">${escapeXml(options.title)}</text>
${shapes.join("\n")}
${texts.join("\n")}
</g>
</svg>
`;
}

/** Splits a line at its SGR sequences. */
function runs(line: string): Array<{ text: string; look: Look }> {
  let look = plain();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is parsed here
  return line.split(/(\u001b\[[\d;]*m)/).flatMap((part) => {
    if (!part.startsWith("\u001b")) return part === "" ? [] : [{ text: part, look }];
    look = changed(look, part.slice(2, -1).split(";").map(Number));
    return [];
  });
}

function plain(): Look {
  return { color: theme.text, background: null, bold: false };
}

function changed(look: Look, codes: number[]): Look {
  let next = { ...look };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number;
    if (code === 0) next = plain();
    else if (code === 1) next.bold = true;
    else if (code === 2) next.color = theme.dim;
    else if ((code === 38 || code === 48) && codes[at + 1] === 2) {
      const color = `rgb(${codes.slice(at + 2, at + 5).join(",")})`;
      if (code === 38) next.color = color;
      else next.background = color;
      at += 4;
    } else {
      throw new Error(
        `The picture uses SGR code ${code}, which only truecolor output without cursor codes may.`,
      );
    }
  }
  return next;
}

function rect(x: number, y: number, w: number, h: number, fill: string): string {
  return `<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${fill}"/>`;
}

function glyphs(text: string, x: number, y: number, look: Look): string {
  const lead = text.length - text.trimStart().length;
  const shown = text.trim();
  const fill = look.color === theme.text ? "" : ` fill="${look.color}"`;
  const weight = look.bold ? ` font-weight="700"` : "";
  const place = `x="${n(x + lead * cell.width)}" y="${n(y)}"`;
  const length = `textLength="${n(width(shown) * cell.width)}" lengthAdjust="spacingAndGlyphs"`;
  return `<text ${place} ${length}${fill}${weight}>${escapeXml(shown)}</text>`;
}

function n(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
