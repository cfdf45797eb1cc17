import { createHash } from "node:crypto";

/**
 * The style that Observable Plot puts into each picture, letter for letter: the page's policy lets these two through by
 * their hashes and no other, so that a picture that is saved has its style in itself.
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
