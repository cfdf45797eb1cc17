/** The pictures of reports name their libraries as globals, since they are inlined there; here they are bundled. */
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";

Object.assign(globalThis, { d3, Plot });
