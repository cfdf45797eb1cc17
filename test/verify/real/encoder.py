"""Embeddings of all-MiniLM-L6-v2 as its own card computes them with transformers: mean over tokens, unit length.

    encoder.py FOLDER TEXTS
"""
import json
import sys

import torch
from transformers import AutoModel, AutoTokenizer

folder, texts = sys.argv[1], json.loads(sys.argv[2])
torch.set_grad_enabled(False)
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
answers = []
for text in texts:
    inputs = tokenizer(text, return_tensors="pt")
    states = model(**inputs).last_hidden_state[0]
    answers.append(torch.nn.functional.normalize(states.mean(0), dim=0).tolist())
print(json.dumps(answers))
