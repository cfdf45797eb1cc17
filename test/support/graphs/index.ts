/** Compute graphs by hand, which no model has, and what the addon proves of them. */
import { execFileSync } from "node:child_process";
import type { Point } from "../../../src/native/index.js";
import { builtTool } from "../built-tool.js";

/** Where a point of one block was found. */
export interface FoundSite {
  node: string;
  /** Where the way back from the block's output leads; the same node. */
  reached: string;
  /** The node by whose name it is found, this many nodes before it. */
  anchor: string;
  offset: number;
  width: number;
  heads: number;
  experts: number;
  /** Of the router, the node that has all experts' ids. */
  chosen: string;
}

export interface FoundPoints {
  parallel: number;
  normed: number;
  scaled: number;
  points: Record<
    Point,
    {
      /** One sentence, where no block has it; else empty. */
      reason: string;
      /** The reasons why single blocks lack it. */
      without: string[];
      /** A block each; null where one lacks it. */
      sites: (FoundSite | null)[];
    }
  >;
}

/** Numbers of a row, rows, attention's heads, experts, and how many of these a token gets. */
export const sizes = { width: 8, tokens: 4, heads: 2, experts: 6, used: 2 } as const;
const { width, tokens, heads, experts, used } = sizes;

type Shape = readonly number[];

export interface TensorOptions {
  /** [width, tokens] unless told. */
  ne?: Shape;
  type?: "f32" | "f16" | "i32";
  /** Its name in the graph, where that differs. */
  called?: string;
  /** Of a view. */
  offset?: number;
  /** Bytes from one row to the next. */
  stride?: number;
  /** The first parameter of the operation. */
  param?: number;
}

/** ggml's number for descending order. */
const descending = 1;

/** Writes a graph down, node by node; each method answers with the name of what it adds. */
export class Graph {
  private readonly lines: string[] = [];
  private readonly leaves = new Set<string>();

  node(name: string, op: string, sources: readonly string[], options: TensorOptions = {}): string {
    const { ne = [width, tokens], type = "f32", ...keys } = options;
    const shape = [0, 1, 2, 3].map((i) => ne[i] ?? 1);
    const words = Object.entries(keys).map(([key, value]) => `${key}=${value}`);
    this.lines.push(["tensor", name, op, type, ...shape, ...words, ...sources].join(" "));
    return name;
  }

  /** A weight, a memory, or what a batch brings along. */
  leaf(name: string, options: TensorOptions = {}): string {
    if (!this.leaves.has(name)) this.node(name, "NONE", [], options);
    this.leaves.add(name);
    return name;
  }

  add(name: string, one: string, other: string, options?: TensorOptions): string {
    return this.node(name, "ADD", [one, other], options);
  }

  /** A product with a weight. */
  product(name: string, of: string, options?: TensorOptions): string {
    return this.node(name, "MUL_MAT", [this.leaf("weight", { ne: [width, width] }), of], options);
  }

  /** The tokens' rows. */
  tokens(): string {
    const ids = this.leaf("inp_tokens", { ne: [tokens], type: "i32" });
    return this.node("embd", "GET_ROWS", [this.leaf("token_embd", { ne: [width, 50] }), ids]);
  }

  /** How much each token reads of each other, by head. */
  weights(name: string, from: string, options?: TensorOptions): string {
    const scores = this.product(`${name}-scores`, from, { ne: [tokens, tokens, heads] });
    const mask = this.leaf("mask", { ne: [tokens, tokens] });
    return this.node(name, "SOFT_MAX", [scores, mask], { ne: [tokens, tokens, heads], ...options });
  }

  /** Attention without a memory, from a row's query to what it adds. */
  attention(name: string, from: string): string {
    const weights = this.weights(`${name}-weights`, from);
    const values = this.product(`${name}-values`, from, { ne: [tokens, width / heads, heads] });
    return this.product(name, this.sideBySide(`${name}-heads`, values, weights));
  }

  /** What heads read, brought side by side. */
  sideBySide(name: string, values: string, weights: string, options?: TensorOptions): string {
    const ne = [width / heads, tokens, heads];
    const read = this.node(`${name}-read`, "MUL_MAT", [values, weights], { ne });
    const turned = this.node(`${name}-turned`, "PERMUTE", [read], { ne: [width / heads, heads, tokens] });
    return this.node(name, "CONT", [turned], options);
  }

  /** A transformation of a row. */
  mlp(name: string, from: string): string {
    return this.product(name, this.node(`${name}-up`, "UNARY", [this.product(`${name}-gate`, from)]));
  }

  /** A block as most are. */
  block(layer: number, from: string): string {
    const mid = this.add(`mid-${layer}`, from, this.attention(`attn-${layer}`, from));
    return this.add(`out-${layer}`, mid, this.mlp(`mlp-${layer}`, mid));
  }

  /** Each expert's probability of each token; "sorted" and "ids", which of them it gets. */
  choice(from: string, prefix = ""): { probabilities: string; ids: string } {
    const gate = this.product(`${prefix}logits`, from, { ne: [experts, tokens] });
    const probabilities = this.node(`${prefix}probabilities`, "SOFT_MAX", [gate], { ne: [experts, tokens] });
    const sorted = this.sorted(probabilities, `${prefix}sorted`);
    return { probabilities, ids: this.best(sorted, `${prefix}ids`) };
  }

  sorted(probabilities: string, name: string, options?: TensorOptions): string {
    const ne = [experts, tokens];
    return this.node(name, "ARGSORT", [probabilities], { ne, type: "i32", param: descending, ...options });
  }

  best(sorted: string, name: string, options?: TensorOptions): string {
    return this.node(name, "VIEW", [sorted], {
      ne: [used, tokens],
      type: "i32",
      stride: experts * 4,
      ...options,
    });
  }

  /** A number of each expert of a token, read by its id. */
  picked(name: string, of: string, ids: string): string {
    const rows = this.node(`${name}-rows`, "RESHAPE", [of], { ne: [1, experts, tokens] });
    return this.node(name, "GET_ROWS", [rows, ids], { ne: [1, used, tokens] });
  }

  /** What each expert of a token makes of it. */
  byExperts(name: string, of: string, ids: string): string {
    const weight = this.leaf("experts", { ne: [width, width, experts] });
    return this.node(name, "MUL_MAT_ID", [weight, of, ids], { ne: [width, used, tokens] });
  }

  /** The sum over a token's experts. */
  summed(name: string, weighed: string): string {
    const [one, other] = [0, 1].map((i) =>
      this.node(`${name}-${i}`, "VIEW", [weighed], { offset: i * width * 4 }),
    );
    return this.add(name, one as string, other as string);
  }

  async points(...outputs: string[]): Promise<FoundPoints> {
    const input = [...this.lines, ["points", width, ...outputs].join(" "), ""].join("\n");
    return JSON.parse(
      execFileSync(await builtTool("tapline-graph-points"), { input, encoding: "utf8" }),
    ) as FoundPoints;
  }
}
