import { underPath } from "../http/index.js";

/** Paths that pages of allowed origins may use. */
export const forPages = underPath("/v1");
