/** Where a field takes one of several things, a refusal names all of them, and the field itself. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { ChatRequest } from "../../src/contracts/chat.js";
import { InvalidInput, validate } from "../../src/contracts/validate.js";

const refusals: Array<[fields: object, sentence: string, field: string]> = [
  [{ stop: 5 }, "stop: must be a string or an array, got 5.", "stop"],
  [{ stop: ["a", 1] }, "stop[1]: must be a string, got 1.", "stop[1]"],
  [
    { tool_choice: "maybe" },
    'tool_choice: must be "none", "auto", "required" or an object, got "maybe".',
    "tool_choice",
  ],
  [
    { response_format: { type: "yaml" } },
    'response_format.type: must be "text", "json_object" or "json_schema", got "yaml".',
    "response_format.type",
  ],
  [{ logit_bias: "x" }, 'logit_bias: must be an object or an array, got "x".', "logit_bias"],
  [{ logit_bias: [[1, true]] }, "logit_bias[0][1]: must be a number or false, got true.", "logit_bias[0][1]"],
  [
    { messages: [{ role: "user", content: 5 }] },
    "messages[0].content: must be a string, an array or null, got 5.",
    "messages[0].content",
  ],
  [{ temperature: "hot" }, 'temperature: must be a number, got "hot".', "temperature"],
  [{ messages: undefined }, "messages is required.", "messages"],
  [{ messages: [{ content: "x" }] }, "messages[0]: role is required.", "messages[0].role"],
];

for (const [fields, sentence, field] of refusals) {
  test(sentence, () => {
    const body = { messages: [{ role: "user", content: "x" }], ...fields };
    if ("messages" in fields && fields.messages === undefined)
      delete (body as { messages?: unknown }).messages;
    try {
      validate(ChatRequest, body);
    } catch (error) {
      assert.instance(error, InvalidInput);
      assert.equal([(error as InvalidInput).message, (error as InvalidInput).field], [sentence, field]);
      return;
    }
    assert.unreachable("accepted");
  });
}

test.run();
