// The words that a comparison knows, apart from the schemas: the command line names them without loading these.
export const interventions = ["scale", "ablate", "patch", "steer", "project_out", "clamp"] as const;
export const strengthUnits = ["unit", "vector", "row_norm"] as const;
export const positionNames = ["last", "all", "prompt", "generated"] as const;
export const patchDirections = ["denoise", "noise"] as const;
