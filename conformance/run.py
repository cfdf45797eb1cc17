"""Asks every engine everything and writes the table:

    python3 conformance/run.py [--engine NAME ...] [--only QUESTION ...] [--table FILE.md] [--keep]

Each engine runs in its own virtual environment, made on first use from `environments/`. Programs that are not Python
packages are named by the environment: TAPLINE_COMMAND, LLAMA_SERVER, LLAMA_QUANTIZE. Answers are saved in `answers/`; with
`--keep`, only the table is written again; with `--only`, nothing is saved. Exits with 1 if an engine did not finish.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from suite.engines import ENGINES  # noqa: E402
from table import write_table  # noqa: E402

CACHE = os.environ.get("CONFORMANCE_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tapline", "conformance"
)
LIMIT = 1800  # seconds for one engine


def environment(name):
    """The interpreter of an environment. torch is installed first and alone: packages that require any version would bring another."""
    requirements = os.path.join(HERE, "environments", f"{name}.txt")
    with open(requirements) as file:
        text = file.read()
    folder = os.path.join(CACHE, "environments", name)
    python, stamp = os.path.join(folder, "bin", "python"), os.path.join(folder, "stamp")
    digest = hashlib.sha256(text.encode()).hexdigest()
    if os.path.exists(stamp) and open(stamp).read() == digest:
        return python
    print(f"Making the environment {name} in {folder}.", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [python, "-m", "pip", "install", "-q"]
    for line in text.split("\n"):
        if line.startswith("torch=="):
            subprocess.run([*pip, line], check=True)
    subprocess.run([*pip, "--no-deps", "-r", requirements], check=True)
    with open(stamp, "w") as file:
        file.write(digest)
    return python


def version(engine):
    """The version that a program reports."""
    command = {"tapline": os.environ.get("TAPLINE_COMMAND", "tapline"), "llama_cpp": os.environ.get("LLAMA_SERVER", "")}
    words = shlex.split(command.get(engine, ""))
    if not words or shutil.which(words[0]) is None:
        return ""
    said = subprocess.run([*words, "--version"], capture_output=True, text=True)
    lines = [line.strip() for line in (said.stdout + said.stderr).split("\n") if line.strip()]
    patterns = (re.match(r"version: (\S+)|(\d+\.\d+\.\d+)$", line) for line in lines)
    return next((found[1] or found[2] for found in patterns if found), "")


def answers_of(engine):
    return os.path.join(HERE, "answers", f"{engine}.json")


def ask(engine, models, only):
    python = environment(ENGINES[engine].environment)
    # Answers to some of the questions do not replace the saved answers to all.
    answers = os.path.join(CACHE, f"{engine}.json") if only else answers_of(engine)
    words = [python, os.path.join(HERE, "ask.py"), engine, models, answers]
    for question in only:
        words += ["--only", question]
    variables = {**os.environ, "CONFORMANCE_VERSION": version(engine)}
    try:
        return subprocess.run(words, env=variables, timeout=LIMIT).returncode
    except subprocess.TimeoutExpired:
        print(f"{engine}: stopped after {LIMIT // 60} minutes.", flush=True)
        return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", action="append", choices=list(ENGINES))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--table", default=os.path.join(HERE, "table.md"))
    parser.add_argument("--keep", action="store_true", help="ask nothing, write the table from the saved answers")
    options = parser.parse_args()
    failed = []
    if not options.keep:
        models = os.path.join(CACHE, "models")
        words = [environment("plain"), os.path.join(HERE, "prepare.py"), models, os.environ.get("LLAMA_QUANTIZE", "")]
        subprocess.run([word for word in words if word], check=True)
        os.makedirs(os.path.join(HERE, "answers"), exist_ok=True)
        failed = [engine for engine in options.engine or ENGINES if ask(engine, models, options.only) != 0]
    if not options.only:
        saved = []
        for engine in ENGINES:
            if os.path.exists(answers_of(engine)):
                with open(answers_of(engine)) as file:
                    saved.append(json.load(file))
        write_table(options.table, saved)
        print(f"Wrote {options.table}.")
    if failed:
        raise SystemExit(f"Not finished: {', '.join(failed)}.")


main()
