"""The one command: python3 models/demo/make.py [--llama-server PATH] [--rehearsal]

Tokenizer, training, export, evaluation, circuits; with a llama-server binary also the parity check.
Needs Debian's python3-torch, python3-numpy and libopenblas0. Work files go to build/ beside this file.
"""
import argparse
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
STAGES = (800, 1800, 850)                 # training steps of 4096 tokens


def steps(share):
    """Every script with its arguments; `share`: how much of the training and of the evaluation is done."""
    yield ["tokenizer.py", "build/tokenizer.json"]
    for stage, n in enumerate(STAGES, 1):
        start = ["--start", f"build/stage{stage - 1}.pt"] if stage > 1 else []
        out = "build/model.pt" if stage == len(STAGES) else f"build/stage{stage}.pt"
        yield ["train.py", "--stage", str(stage), "--steps", str(max(1, round(n * share))), *start, "--out", out]
    yield ["export.py"]
    yield ["evaluate.py", "--share", str(share), "--json", "evaluation.json"]
    yield ["circuits.py", "--json", "evaluation.json"]


def run(step, folder, check=True):
    start = time.time()
    print("==", *step, flush=True)
    done = subprocess.run([sys.executable, "-B", *step], cwd=folder, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if check and done.returncode:
        sys.exit(f"{step[0]} failed (exit code {done.returncode}); the steps before it are done")
    print(f"== {step[0]} took {time.time() - start:.0f} s", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until_up(process, url, seconds=60):
    end = time.time() + seconds
    while time.time() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url + "/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit(f"llama-server did not come up (exit code {process.poll()})")


def parity(server, folder, rehearsal):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([server, "-m", "tapline-demo.gguf", "--port", str(port), "--jinja", "-t", "1"],
                               cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_up(process, url)
        # An untrained model's best two tokens may be as good as equal: in a rehearsal differences do not count.
        run(["parity.py", "--url", url, "--json", "evaluation.json", *(["--prompts", "20"] if rehearsal else [])],
            folder, check=not rehearsal)
    finally:
        process.terminate()
        process.wait()


def make(folder, server, rehearsal):
    start = time.time()
    os.makedirs(os.path.join(folder, "build"), exist_ok=True)
    for step in steps(0.01 if rehearsal else 1.0):
        run(step, folder)
    if server:
        parity(server, folder, rehearsal)
    run(["card.py"], folder)
    print(f"done in {(time.time() - start) / 60:.0f} minutes")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--llama-server", default="", help="path of a llama-server binary, for the parity check")
    p.add_argument("--rehearsal", action="store_true",
                   help="every step at a hundredth of its size in a temporary folder, to see that all of them work")
    a = p.parse_args()
    if any(importlib.util.find_spec(name) is None for name in ("torch", "numpy")):
        sys.exit(f"PyTorch and numpy are missing for {sys.executable}: apt-get install python3-torch python3-numpy "
                 "libopenblas0, and use /usr/bin/python3")
    server = os.path.abspath(a.llama_server) if a.llama_server else ""
    if server and not os.access(server, os.X_OK):
        sys.exit(f"{server} is not a program that can be run")
    if not a.rehearsal:
        return make(HERE, server, False)
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(HERE):
            if name.endswith((".py", ".md", ".json")):
                shutil.copy(os.path.join(HERE, name), folder)
        make(folder, server, True)


if __name__ == "__main__":
    main()
