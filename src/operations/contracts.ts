import type { Static } from "typebox";
import compare from "./compare/contract.js";
import type { Contract, Place } from "./contract.js";
import drift from "./drift/contract.js";
import explain from "./explain/contract.js";
import extract from "./extract/contract.js";
import features from "./features/contract.js";
import graph from "./graph/contract.js";
import inspect from "./inspect/contract.js";
import patchSweep from "./patch_sweep/contract.js";
import probe from "./probe/contract.js";
import sae from "./sae/contract.js";

export * from "./compare/contract.js";
export * from "./drift/contract.js";
export * from "./explain/contract.js";
export * from "./extract/contract.js";
export * from "./features/contract.js";
export * from "./graph/contract.js";
export * from "./inspect/contract.js";
export * from "./patch_sweep/contract.js";
export * from "./probe/contract.js";
export * from "./sae/contract.js";

/** Every operation by its name in submissions. Studies count by this order: append new ones. */
export const contracts = {
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
} satisfies Record<string, Contract>;

type Contracts = typeof contracts;
export type Operation = keyof Contracts;
export const operations = Object.keys(contracts) as Operation[];

/** The body of `POST /lab/v1/jobs`. */
export type SubmissionOf<O extends Operation> = { [K in O]: Static<Contracts[K]["submission"]> }[O];
/** A validated submission, its defaults filled in. */
export type ConfigOf<O extends Operation> = { [K in O]: Parameters<Contracts[K]["check"]>[0] }[O];
export type ResultOf<O extends Operation> = { [K in O]: Static<Contracts[K]["result"]> }[O];
export type Config = ConfigOf<Operation>;
export type Result = ResultOf<Operation>;

const places: Record<string, Place> = Object.assign(
  { model: "model" },
  ...operations.map((operation) => contracts[operation].places),
);
const placesThat = (test: (place: Place) => boolean) =>
  Object.keys(places).filter((field) => test(places[field] as Place));

/**
 * Submission fields that name models, and those that name files or folders on the Lab's machine or hosts that it may
 * contact. Reports and study packages contain only the last part of these values.
 */
export const modelFields = placesThat((place) => place === "model");
export const placeFields = placesThat((place) => place !== "model");
