"""A sweep over strengths with Ray Data: requests to a server or router, each with its own intervention.

    python ray-sweep.py http://127.0.0.1:8971
"""

import sys

import ray
from ray.data.llm import HttpRequestProcessorConfig, build_processor

PROMPTS = [f"The capital of {country} is" for country in ("France", "Spain", "Japan", "Italy")]
STRENGTHS = (0.0, 0.5, 1.0)


def request(row):
    intervention = {"kind": "scale", "layer": 3, "strength": row["strength"]}
    body = {"prompt": row["prompt"], "max_tokens": 4, "temperature": 0, "tapline": {"interventions": [intervention]}}
    return {"payload": {"model": "tapline-demo", **body}, "prompt": row["prompt"], "strength": row["strength"]}


def answer(row):
    text = row["http_response"]["choices"][0]["text"]
    return {"prompt": row["prompt"], "strength": row["strength"], "text": text}


config = HttpRequestProcessorConfig(url=f"{sys.argv[1]}/v1/completions", batch_size=4, concurrency=2)
sweep = build_processor(config, preprocess=request, postprocess=answer)
trials = ray.data.from_items([{"prompt": prompt, "strength": strength} for prompt in PROMPTS for strength in STRENGTHS])
for trial in sorted(sweep(trials).take_all(), key=lambda trial: (trial["prompt"], trial["strength"])):
    print(trial["prompt"], trial["strength"], trial["text"], sep="\t")
