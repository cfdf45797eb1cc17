"""One tool in a separate process: one task per line in, its seconds and its result one line out.

    tool.py NAME FOLDER THREADS DEVICE < TASKS > ANSWERS

DEVICE is cpu or cuda.
"""
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from learn import probe_and_sae  # noqa: E402
from served import Served  # noqa: E402
from tools import TOOLS  # noqa: E402

torch.set_grad_enabled(False)


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def norms(states):
    """Of each block's last row: enough to see that it is the same block of the same model."""
    return [float(torch.linalg.vector_norm(state[-1])) for state in states]


def capture(tool, tokens, layers):
    states, logits = tool.capture(tokens, layers)
    return lambda: {"norms": norms(states), **({} if logits is None else {"next": int(logits.argmax())})}


def forward(tool, batch, layers):
    states, logits = tool.forward(batch, layers)
    rows = [torch.as_tensor(state).reshape(-1, state.shape[-1]) for state in states]
    return lambda: {"norms": norms(rows), "next": int(logits[-1].argmax()), "rows": sum(len(each) for each in rows)}


def calls(tool, tokens, count, at_once, layer=None, tasks=False):
    tool.calls(tokens, count, at_once, layer, tasks)
    return lambda: {}


def extract(tool, texts, layer):
    rows = tool.extract(texts, layer)
    return lambda: {"norms": norms([rows[0], rows[-1]]), "rows": sum(len(each) for each in rows)}


def compare(tool, tokens, layer, vector, strengths, count, batched):
    if batched and not getattr(tool, "batches", True):
        return lambda: {"unable": True}
    found = tool.compare(tokens, layer, torch.tensor(vector), strengths, count, batched)
    return lambda: {"continuations": found}


def generate(tool, tokens, count):
    found = tool.generate(tokens, count)
    return lambda: {"continuations": [found]}


def patch(tool, clean, corrupted, target, foil):
    found = tool.patch(clean, corrupted, target, foil)
    return lambda: {"patched": found.flatten().tolist()}


def learn(tool, texts, labels, train, layer, features, steps):
    rows = torch.stack([rows[-1] for rows in tool.extract(texts, layer)]).cpu().numpy()
    with torch.device("cpu"):  # as tapline's trainers
        found = probe_and_sae(rows, labels, train, features, steps)
    return lambda: found


TASKS = {
    each.__name__: each for each in (capture, forward, calls, extract, compare, generate, learn, patch)
}


def main(name, folder, threads, device):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # tools print
    torch.set_num_threads(int(threads))
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(f"{name}'s PyTorch {torch.__version__} has no CUDA, so it would compute on the processor.")
    torch.set_default_device(device)
    tool = Served(folder) if name == "tapline" else TOOLS[name](folder)
    for line in sys.stdin:
        task = json.loads(line)
        work = TASKS[task.pop("task")]
        begin, began = time.perf_counter(), time.process_time()
        found = work(tool, **task)
        if device == "cuda":
            torch.cuda.synchronize()
        spent = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - began}
        # Of the whole process, from its start: the duration of a cold start.
        spent["in_all"] = time.process_time()
        answers.write(json.dumps({**spent, "peak": peak_bytes(), **found()}) + "\n")
        answers.flush()


main(*sys.argv[1:])
