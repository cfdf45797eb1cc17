/** Reports inline their libraries as globals; the page bundles them and defines the same globals. */
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";

Object.assign(globalThis, { d3, Plot });
