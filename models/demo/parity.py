"""Parity: greedy text of an OpenAI-style server (llama-server, tapline serve) against PyTorch.

Start a server on tapline-demo.gguf, then: python3 parity.py --url http://127.0.0.1:8080
Raw prompts go to /v1/completions, chat questions to /v1/chat/completions (template applied there).
"""
import argparse
import json
import os
import random
import urllib.request

import corpus
import evaluate
from model import load
from tokenizer import Tokenizer


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as r:
        return json.load(r)


def sample(n, seed=3):
    """n raw prompts over all raw groups, and n // 4 chat questions."""
    rng, groups = random.Random(seed), evaluate.groups()
    raw = [v for k, v in groups.items() if not k.startswith(("chat", "small"))]
    prompts = [rng.choice(raw[i % len(raw)])[0] for i in range(n)]
    chats = [(corpus.one_turn(rng)[0], i % 2 == 0, rng.choice((None, corpus.SYSTEMS[0]))) for i in range(n // 4)]
    return prompts, chats


def served_raw(url, prompt):
    r = post(url + "/v1/completions", {"model": "tapline-demo", "prompt": prompt, "temperature": 0, "max_tokens": 60})
    return r["choices"][0]["text"]


def served_chat(url, question, thinking, system):
    messages = ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": question}]
    r = post(url + "/v1/chat/completions", {
        "model": "tapline-demo", "messages": messages, "temperature": 0, "max_tokens": 60,
        "chat_template_kwargs": {"enable_thinking": thinking}})
    m = r["choices"][0]["message"]
    return (m.get("reasoning_content") or "").strip(), (m["content"] or "").strip()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--url", required=True)
    p.add_argument("--model", default="build/model.pt")
    p.add_argument("--tokenizer", default="build/tokenizer.json")
    p.add_argument("--prompts", type=int, default=400)
    p.add_argument("--server", default="llama-server of llama.cpp v0.5.0", help="what is at --url, for the record")
    p.add_argument("--json", default="")
    a = p.parse_args()
    model, tok = load(a.model), Tokenizer.load(a.tokenizer)
    prompts, chats = sample(a.prompts)
    want = evaluate.generate(model, tok, prompts)
    same = 0
    for prompt, w in zip(prompts, want):
        got = served_raw(a.url, prompt)
        same += got == w
        if got != w:
            print(f"differs: {prompt!r}\n  served {got!r}\n  torch  {w!r}")
    rendered = [corpus.chat_prompt(q, t, s) for q, t, s in chats]
    same_chat = 0
    for (q, t, s), w in zip(chats, evaluate.generate(model, tok, rendered)):
        head, _, tail = w.rpartition("</think>")
        w = (head.replace("<think>", "").strip(), tail.strip())
        got = served_chat(a.url, q, t, s)
        same_chat += got == w
        if got != w:
            print(f"differs: {q!r} thinking={t}\n  served {got!r}\n  torch  {w!r}")
    result = {"server": a.server, "raw": [same, len(prompts)], "chat": [same_chat, len(chats)]}
    print(f"equal: raw {same} of {len(prompts)}, chat {same_chat} of {len(chats)}")
    if a.json:
        record = json.load(open(a.json)) if os.path.exists(a.json) else {}
        record["parity"] = result
        with open(a.json, "w") as f:
            json.dump(record, f, indent=1)
    raise SystemExit(0 if same == len(prompts) and same_chat == len(chats) else 1)


if __name__ == "__main__":
    main()
