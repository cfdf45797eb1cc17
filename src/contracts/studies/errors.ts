import Type, { type Static } from "typebox";
import { optional } from "../optional.js";

/** Every error code and its status. Codes are stable; sentences are not. */
export const errorCodes = {
  malformed_request: 400,
  unsupported_content_type: 400,
  unsupported_content_encoding: 400,
  body_too_large: 400,
  body_incomplete: 400,
  invalid_utf8: 400,
  invalid_json: 400,
  too_deep: 400,
  duplicate_key: 400,
  number_out_of_range: 400,
  missing_property: 400,
  unknown_property: 400,
  invalid_value: 400,
  blank_title: 400,
  duplicate_entry_id: 400,
  unknown_parent: 400,
  parent_cycle: 400,
  unknown_parameter: 400,
  repeated_parameter: 400,
  invalid_parameter: 400,
  invalid_idempotency_key: 400,
  idempotency_key_reused: 400,
  token_missing: 401,
  token_invalid: 401,
  token_expired: 401,
  token_revoked: 401,
  browser_request: 403,
  https_required: 403,
  scope_missing: 403,
  not_found: 404,
  withdrawn: 410,
  removed: 410,
  draft_deleted: 410,
  method_not_allowed: 405,
  request_quota: 429,
  draft_quota: 429,
  disabled: 503,
  unavailable: 503,
} as const;
export type ErrorCode = keyof typeof errorCodes;

/** The request id of every 404 for a study: those answers are identical, so that they reveal nothing. */
export const constantRequestId = "00000000-0000-0000-0000-000000000000";

export const ErrorBody = Type.Object(
  {
    error: Type.String({ description: "One sentence." }),
    code: Type.Enum(Object.keys(errorCodes) as ErrorCode[]),
    field: optional.String({
      description:
        "JSON pointer into the body (empty for the whole body), or the invalid parameter or header.",
    }),
    reason: optional.String({
      description: "Why a study was withdrawn or removed, as stated by the author or moderator.",
    }),
    request_id: Type.String({
      description:
        "Id of this answer in the service's log; all zeros in a 404 for a study, which is always identical.",
    }),
  },
  { additionalProperties: false, title: "Error" },
);
export type ErrorBody = Static<typeof ErrorBody>;
