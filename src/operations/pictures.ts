import compare from "./compare/picture.js";
import type { Operation } from "./contracts.js";
import drift from "./drift/picture.js";
import explain from "./explain/picture.js";
import extract from "./extract/picture.js";
import features from "./features/picture.js";
import graph from "./graph/picture.js";
import inspect from "./inspect/picture.js";
import patchSweep from "./patch_sweep/picture.js";
import type { Picture } from "./picture.js";
import probe from "./probe/picture.js";
import sae from "./sae/picture.js";

/** How the terminal draws each operation's jobs. */
export const pictures: { [O in Operation]: Picture<O> } = {
  inspect,
  compare,
  probe,
  sae,
  features,
  extract,
  drift,
  patch_sweep: patchSweep,
  explain,
  graph,
};
