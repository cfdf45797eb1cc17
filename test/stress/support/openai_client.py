"""The official client of OpenAI with its own defaults against a served demo model: prints what it saw as JSON."""

import json
import sys

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none")
MODEL = "tapline-demo"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "heat",
            "description": "Switches the heating.",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"on": {"type": "boolean"}},
                "required": ["on"],
                "additionalProperties": False,
            },
        },
    }
]
saw = {"models": [model.id for model in client.models.list()]}

answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0)
saw["chat"] = answer.choices[0].message.content
saw["usage"] = answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens

parts = []
with client.chat.completions.create(
    model=MODEL, messages=QUESTION, temperature=0, stream=True, stream_options={"include_usage": True}
) as stream:
    for chunk in stream:
        parts += [choice.delta.content or "" for choice in chunk.choices]
        if chunk.usage:
            saw["streamed_usage"] = chunk.usage.completion_tokens == answer.usage.completion_tokens
saw["streamed"] = "".join(parts)

# Nobody taught the model to call: the bias begins the call, the grammar does the rest.
called = client.chat.completions.create(
    model=MODEL,
    messages=QUESTION,
    tools=TOOLS,
    tool_choice={"type": "function", "function": {"name": "heat"}},
    parallel_tool_calls=False,
    temperature=0,
    max_tokens=120,
    logit_bias={"{": 100},
)
calls = called.choices[0].message.tool_calls or []
saw["tool"] = [call.function.name for call in calls]
saw["arguments"] = [sorted(json.loads(call.function.arguments)) for call in calls]

response = client.responses.create(model=MODEL, input="What is the capital of France?", temperature=0)
saw["response"] = response.output_text
kinds = []
with client.responses.stream(model=MODEL, input="What is the capital of France?", temperature=0) as events:
    for event in events:
        kinds.append(event.type)
    saw["response_streamed"] = events.get_final_response().output_text
saw["events"] = [kinds[0], kinds[-1]]

one, two = (client.embeddings.create(model=MODEL, input=text).data[0].embedding for text in ("a cat", "a cat"))
saw["embedding"] = len(one)
saw["embeddings_differ_by"] = max(abs(a - b) for a, b in zip(one, two))

watched = client.chat.completions.create(
    model=MODEL,
    messages=QUESTION,
    temperature=0,
    max_tokens=4,
    extra_body={"tapline": {"watch": {"layers": [0], "norms": True}}},
)
saw["watched"] = watched.choices[0].model_extra["tapline"] is not None
try:
    client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=9000)
except BadRequestError as error:
    saw["refused"] = error.param
print(json.dumps(saw))
