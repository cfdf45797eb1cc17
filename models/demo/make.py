"""The one command: python3 models/demo/make.py [--llama-server PATH]

Tokenizer, training, export, evaluation, circuits; with a llama-server binary also the parity check.
Needs Debian's python3-torch, python3-numpy and libopenblas0. Work files go to build/ beside this file.
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = [
    ["tokenizer.py", "build/tokenizer.json"],
    ["train.py", "--stage", "1", "--steps", "800", "--out", "build/stage1.pt"],
    ["train.py", "--stage", "2", "--steps", "1800", "--start", "build/stage1.pt"],
    ["export.py"],
    ["evaluate.py", "--json", "evaluation.json"],
    ["circuits.py", "--json", "evaluation.json"],
]


def run(step, env):
    start = time.time()
    print("==", *step, flush=True)
    subprocess.run([sys.executable, "-B", *step], cwd=HERE, env=env, check=True)
    print(f"== {step[0]} took {time.time() - start:.0f} s", flush=True)


def parity(server, env, port="18970"):
    process = subprocess.Popen([server, "-m", "tapline-demo.gguf", "--port", port, "--jinja", "-t", "1"], cwd=HERE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(5)
        run(["parity.py", "--url", f"http://127.0.0.1:{port}", "--json", "evaluation.json"], env)
    finally:
        process.terminate()
        process.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--llama-server", default="", help="path of a llama-server binary, for the parity check")
    a = p.parse_args()
    os.makedirs(os.path.join(HERE, "build"), exist_ok=True)
    env = dict(os.environ, OMP_NUM_THREADS="1")
    start = time.time()
    for step in STEPS:
        run(step, env)
    if a.llama_server:
        parity(os.path.abspath(a.llama_server), env)
    run(["card.py"], env)
    print(f"done in {(time.time() - start) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
