import type { Colors } from "./canvas.js";

export type Rgb = readonly [red: number, green: number, blue: number];

/** A colour for every value between 0 and 1. */
export interface Scale {
  /** Evenly spaced stops, mixed in between. */
  stops: readonly Rgb[];
  /** Backgrounds for terminals of 16 colours (SGR codes), each for an equal part. */
  basic: readonly number[];
}

/** For probabilities: lightness rises all the way, so it also reads in grey and with colour-blind eyes. */
export const probabilityScale: Scale = {
  stops: [
    [38, 29, 62],
    [54, 68, 127],
    [39, 112, 143],
    [34, 157, 136],
    [109, 201, 93],
    [246, 225, 56],
  ],
  basic: [40, 44, 46, 42, 43],
};

/** For magnitudes: another family of hues, so that nobody reads a norm as a probability. */
export const magnitudeScale: Scale = {
  stops: [
    [40, 32, 48],
    [92, 38, 89],
    [160, 53, 92],
    [219, 87, 70],
    [249, 149, 66],
    [254, 217, 140],
  ],
  basic: [40, 45, 41, 43],
};

const start = "\u001b[";
const reset = `${start}0m`;

/** Text on the scale's colour for a value, in whichever of black and white reads better on it. */
export function onScale(text: string, value: number, scale: Scale, colors: Colors, bold = false): string {
  if (colors === "none") return text;
  const codes = bold ? ["1"] : [];
  if (colors === "16") {
    const background = pick(scale.basic, value);
    codes.push(background === 40 || background === 44 || background === 45 ? "97" : "30", String(background));
  } else {
    const color = mix(scale, value);
    codes.push(
      foreground(isLight(color) ? [16, 16, 16] : [255, 255, 255], colors),
      background(color, colors),
    );
  }
  return `${start}${codes.join(";")}m${text}${reset}`;
}

/** Text in the scale's colour for a value, on the terminal's own background. */
export function inScale(text: string, value: number, scale: Scale, colors: Colors): string {
  if (colors === "none") return text;
  const code =
    colors === "16" ? String(pick(scale.basic, value) - 10) : foreground(mix(scale, value), colors);
  return `${start}${code}m${text}${reset}`;
}

export function bold(text: string, colors: Colors): string {
  return colors === "none" ? text : `${start}1m${text}${reset}`;
}

export function dim(text: string, colors: Colors): string {
  return colors === "none" ? text : `${start}2m${text}${reset}`;
}

/** The colour of a value; values outside 0 to 1, and no number, count as the nearest end. */
export function mix({ stops }: Scale, value: number): Rgb {
  const place = clamp(value) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const [from, to] = [stops[low] as Rgb, stops[low + 1] as Rgb];
  const share = place - low;
  const channel = (index: 0 | 1 | 2) => Math.round(from[index] + (to[index] - from[index]) * share);
  return [channel(0), channel(1), channel(2)];
}

function pick(codes: readonly number[], value: number): number {
  return codes[Math.min(codes.length - 1, Math.floor(clamp(value) * codes.length))] as number;
}

function clamp(value: number): number {
  return Number.isNaN(value) ? 0 : Math.min(1, Math.max(0, value));
}

/** Whether black text has the higher contrast on a colour (WCAG relative luminance). */
function isLight(color: Rgb): boolean {
  const [red, green, blue] = color.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179;
}

function foreground(color: Rgb, colors: Colors): string {
  return colors === "truecolor" ? `38;2;${color.join(";")}` : `38;5;${indexed(color)}`;
}

function background(color: Rgb, colors: Colors): string {
  return colors === "truecolor" ? `48;2;${color.join(";")}` : `48;5;${indexed(color)}`;
}

const cubeLevels = [0, 95, 135, 175, 215, 255];
const greyLevels = Array.from({ length: 24 }, (_, index) => 8 + 10 * index);

/** The nearest of the 216 cube colours and 24 greys of a 256-colour terminal. */
function indexed(color: Rgb): number {
  const cube = color.map((channel) => nearest(cubeLevels, channel)) as [number, number, number];
  const grey = nearest(greyLevels, (color[0] + color[1] + color[2]) / 3);
  const cubeColor = cube.map((level) => cubeLevels[level] as number) as unknown as Rgb;
  const level = greyLevels[grey] as number;
  const greyColor: Rgb = [level, level, level];
  return distance(color, greyColor) < distance(color, cubeColor)
    ? 232 + grey
    : 16 + 36 * cube[0] + 6 * cube[1] + cube[2];
}

function nearest(levels: readonly number[], value: number): number {
  return levels.reduce(
    (best, level, index) =>
      Math.abs(level - value) < Math.abs((levels[best] as number) - value) ? index : best,
    0,
  );
}

function distance(a: Rgb, b: Rgb): number {
  return a.reduce((sum, channel, index) => sum + (channel - (b[index] as number)) ** 2, 0);
}
