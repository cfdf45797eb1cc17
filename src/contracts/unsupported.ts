/**
 * Fields of other servers that would change the answer and are not supported here. They are refused by name (fields
 * that change nothing are ignored); the text names the alternative.
 */
export type Unsupported = Readonly<Record<string, string>>;

/** Fields for which `false` also has an effect; for others, `false` means the field is not used. */
export const meantWhenFalse: ReadonlySet<string> = new Set(["do_sample", "enable_thinking", "think"]);

/** Fields of vLLM, transformers and Ollama. */
const elsewhere: Unsupported = {
  repetition_penalty: "it is called repeat_penalty here",
  guided_json: "use response_format, or json_schema",
  guided_regex: "use grammar",
  guided_choice: "use grammar",
  guided_grammar: "use grammar",
  structured_outputs: "use response_format",
  stop_token_ids: "use stop, or logit_bias",
  min_tokens: "use ignore_eos with max_tokens",
  use_beam_search: "there is no beam search here",
  length_penalty: "there is no beam search here",
  num_beams: "there is no beam search here",
  no_repeat_ngram_size: "use dry_multiplier",
  bad_words: "use logit_bias",
  include_stop_str_in_output: "stop strings end an answer and are left out",
  prompt_logprobs: "use echo with logprobs on /v1/completions",
  max_new_tokens: "it is called max_tokens here",
  num_predict: "it is called max_tokens here",
  do_sample: "temperature 0 takes the most probable token",
  control_vectors: "use interventions of the object tapline",
};

export const unsupportedInChat: Unsupported = {
  ...elsewhere,
  functions: "use tools",
  function_call: "use tool_choice",
  audio: "answers are texts here",
  web_search_options: "this server fetches nothing",
  suffix: "use /infill",
  best_of: "use n, and choose",
  echo: "use /v1/completions",
  chat_template: "start the server with --chat-template",
  enable_thinking: "it belongs into chat_template_kwargs",
  think: "use chat_template_kwargs: {enable_thinking}",
  thinking: "use chat_template_kwargs: {enable_thinking}",
};

export const unsupportedInCompletions: Unsupported = {
  ...elsewhere,
  suffix: "use /infill",
  response_format: "use json_schema or grammar, or /v1/chat/completions",
  tools: "use /v1/chat/completions",
  messages: "use /v1/chat/completions",
};

/** For llama-server's /completion. */
export const unsupportedInNative: Unsupported = unsupportedInCompletions;

export const unsupportedInResponses: Unsupported = {
  previous_response_id: "nothing is stored here; send the whole conversation in input",
  conversation: "nothing is stored here; send the whole conversation in input",
  background: "answers are not kept here",
  prompt: "there are no stored prompts here",
  max_tool_calls: "this server calls no tools itself",
  context_management: "send the context that the model shall see",
};

export const unsupportedInMessages: Unsupported = {
  container: "there are no containers here",
  mcp_servers: "this server calls no tools itself",
  context_management: "send the context that the model shall see",
};
