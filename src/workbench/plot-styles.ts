import { createHash } from "node:crypto";

/**
 * The exact styles that Observable Plot puts into each picture. The page's policy allows only these two, by hash, so that
 * saved pictures contain their style.
 */
const texts = [
  `:where(.plot-d6a7b5) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot-d6a7b5 text),
:where(.plot-d6a7b5 tspan) {
  white-space: pre;
}`,
  `:where(.plot-d6a7b5-ramp) {
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
  overflow: visible;
}
:where(.plot-d6a7b5-ramp text) {
  white-space: pre;
}`,
];

export const plotStyles = texts.map((text) => ({
  text,
  hash: `sha256-${createHash("sha256").update(text).digest("base64")}`,
}));
