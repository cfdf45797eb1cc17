import type { Colors } from "./canvas.js";

export type Rgb = readonly [red: number, green: number, blue: number];

/** Colours for values between 0 and 1. */
export interface Scale {
  /** Evenly spaced stops, interpolated in between. */
  stops: readonly Rgb[];
  /** For 256 colours: indices into the colour cube, each for an equal part. Chosen by eye, because the nearest colours by
   * distance are greys and purples in no order. */
  indexed: readonly number[];
  /** For 16 colours: background codes, each for an equal part. */
  basic: readonly number[];
  /** The part that is readable on both black and white, because the background is unknown. */
  ink: { stops: readonly [low: number, high: number]; indexed: readonly number[]; basic: readonly number[] };
}

/** For probabilities: lightness always increases, so it works in greyscale and for colour-blind readers. */
export const probabilityScale: Scale = {
  stops: [
    [38, 29, 62],
    [54, 68, 127],
    [39, 112, 143],
    [34, 157, 136],
    [109, 201, 93],
    [246, 225, 56],
  ],
  indexed: [17, 18, 24, 30, 36, 71, 113, 149, 185, 220],
  basic: [40, 44, 46, 42, 43],
  ink: { stops: [0.35, 0.6], indexed: [24, 30, 31, 36], basic: [44, 46, 42] },
};

/** For magnitudes: different hues, so that norms are not mistaken for probabilities. */
export const magnitudeScale: Scale = {
  stops: [
    [40, 32, 48],
    [92, 38, 89],
    [160, 53, 92],
    [219, 87, 70],
    [249, 149, 66],
    [254, 217, 140],
  ],
  indexed: [53, 89, 125, 131, 167, 173, 209, 215, 222],
  basic: [40, 45, 41, 43],
  ink: { stops: [0.42, 0.6], indexed: [125, 131, 167], basic: [45, 41] },
};

/** For differences: neutral at 0 in the middle, with bright ends that colour-blind readers can distinguish. */
export const differenceScale: Scale = {
  stops: [
    [255, 154, 77],
    [150, 88, 46],
    [58, 58, 62],
    [38, 112, 122],
    [108, 199, 209],
  ],
  indexed: [215, 172, 130, 94, 59, 66, 30, 37, 80],
  basic: [43, 40, 46],
  ink: { stops: [0, 1], indexed: [172, 59, 37], basic: [43, 46] },
};

const start = "\u001b[";
const reset = `${start}0m`;

/** Text on the scale's colour for a value, in black or white, whichever has more contrast. */
export function onScale(text: string, value: number, scale: Scale, colors: Colors, bold = false): string {
  if (colors === "none") return text;
  return `${start}${bold ? "1;" : ""}${onCodes[colors](scale, value)}m${text}${reset}`;
}

/** Text in the colour of a value, on the terminal's background, from the readable part of the scale. */
export function inScale(text: string, value: number, scale: Scale, colors: Colors): string {
  if (colors === "none") return text;
  return `${start}${inCodes[colors](scale, value)}m${text}${reset}`;
}

type Codes = Record<Exclude<Colors, "none">, (scale: Scale, value: number) => string>;

const onCodes: Codes = {
  "16": (scale, value) => {
    const background = pick(scale.basic, value);
    return `${whiteOn.includes(background) ? 97 : 30};${background}`;
  },
  "256": (scale, value) => {
    const background = pick(scale.indexed, value);
    return `38;5;${isLight(cubeColor(background)) ? 16 : 231};48;5;${background}`;
  },
  truecolor: (scale, value) => {
    const background = mix(scale, value);
    return `38;2;${isLight(background) ? "16;16;16" : "255;255;255"};48;2;${background.join(";")}`;
  },
};

const inCodes: Codes = {
  "16": ({ ink }, value) => String(pick(ink.basic, value) - 10),
  "256": ({ ink }, value) => `38;5;${pick(ink.indexed, value)}`,
  truecolor: (scale, value) => {
    const [low, high] = scale.ink.stops;
    return `38;2;${mix(scale, low + (high - low) * clamp(value)).join(";")}`;
  },
};

/** Basic backgrounds on which white has more contrast than black: black, red, blue, magenta. */
const whiteOn = [40, 41, 44, 45];

export function bold(text: string, colors: Colors): string {
  return colors === "none" ? text : `${start}1m${text}${reset}`;
}

export function dim(text: string, colors: Colors): string {
  return colors === "none" ? text : `${start}2m${text}${reset}`;
}

/** The colour of a value; values outside 0 to 1 are clamped, and NaN counts as 0. */
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

/** A colour of the 6x6x6 cube of a 256-colour terminal. */
function cubeColor(index: number): Rgb {
  const levels = [0, 95, 135, 175, 215, 255];
  const level = (place: number) => levels[Math.floor((index - 16) / place) % 6] as number;
  return [level(36), level(6), level(1)];
}
