/**
 * Fields of a Lab request that name models, and files or folders of the machine it was made on, or hosts that it may ask. What is
 * passed on (reports, study packages) has their last part only.
 */
export const modelFields = ["model", "other", "verbaliser"] as const;
export const placeFields = ["data", "from", "out", "labels"] as const;
