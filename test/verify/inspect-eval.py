"""An Inspect evaluation of 200 samples against a model and a profile, whose server is killed in the middle.

Prints one line of JSON with the figures that inspect.ts checks.
"""

import json
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import inspect_ai
import numpy as np
from inspect_ai import Task
from inspect_ai.analysis import samples_df
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

import tapline_lab as tl
from tapline_lab.inspect import capture_activations, mean_scores

KNOWN = {"France": "Paris", "Spain": "Madrid", "Italy": "Rome", "Japan": "Tokyo", "Norway": "Oslo", "Sweden": "Stockholm"}
INVENTED = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia", "Urdania", "Fenroy"]
SAMPLES = 200


def serving_processes(parent: int) -> list[int]:
    """The child processes of the command, from Linux's process table."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def capital(country: str) -> str:
    return f"The capital of {country} is"


def task(folder: str, port: int, count: int) -> Task:
    countries = list(KNOWN)
    dataset = MemoryDataset(
        [
            Sample(id=index, input=f"What is the capital of {countries[index % 6]}?", target=KNOWN[countries[index % 6]])
            for index in range(count)
        ]
    )
    solver = [capture_activations(["block_out.5"], folder, port=port, positions=[-1]), generate()]
    return Task(dataset=dataset, solver=solver, scorer=includes())


def main() -> None:
    os.environ["INSPECT_DISPLAY"] = "none"
    home = tempfile.mkdtemp()
    model = tl.load("demo", quiet=True)
    port = int(model._http.origin.rsplit(":", 1)[1])
    command = model._server.pid
    serving = tl.ServingModel(port)
    real, invented = [capital(country) for country in KNOWN], [capital(country) for country in INVENTED]
    began = time.monotonic()
    serving.make_vector("unknown", invented, real, [5])
    serving.make_probe("invented", invented, real, 5)
    for name, strength in (("strong", 0.9), ("zero", 0.0)):
        edit = {"kind": "steer", "vector": "unknown", "layer": 5, "strength": strength, "strength_unit": "row_norm"}
        serving.put_profile(name, {"interventions": [edit]})

    def run(profile: str, count: int, kill: bool) -> "inspect_ai.log.EvalLog":
        name = f"tapline/tapline-demo{profile}"
        provider = get_model(
            name,
            base_url=f"http://127.0.0.1:{port}/v1",
            config=GenerateConfig(temperature=0, max_tokens=48, max_connections=8, extra_body={"chat_template_kwargs": {"enable_thinking": False}}),
            tapline={"watch": {"probes": ["invented"]}},
        )
        if kill:
            threading.Timer(4.0, lambda: [os.kill(pid, signal.SIGKILL) for pid in serving_processes(command)]).start()
        return inspect_ai.eval(
            task(os.path.join(home, profile or "base"), port, count),
            model=provider,
            log_dir=os.path.join(home, "logs"),
            max_retries=20,
            fail_on_error=False,
        )[0]

    def accuracy(log: "inspect_ai.log.EvalLog") -> float:
        return float(log.results.scores[0].metrics["accuracy"].value)

    def answers(log: "inspect_ai.log.EvalLog") -> list[str]:
        return [sample.output.completion for sample in sorted(log.samples, key=lambda one: one.id)]

    base, zero, strong = run("", 12, False), run("@zero", 12, False), run("@strong", 12, False)
    killed = run("", SAMPLES, True)
    uptime = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/stats"))["uptime_seconds"]
    whole = [sample for sample in killed.samples if sample.error is None and sample.output.completion]
    frame = samples_df(killed.location)
    column = frame["metadata_tapline_invented"] if "metadata_tapline_invented" in frame else None
    first = base.samples[0]
    report = first.output.metadata["tapline"]
    scores = [token["probes"]["invented"] for token in report["tokens"]]
    captured = Path(first.metadata["tapline_capture"])
    row = np.load(captured)["block_out.5"]
    again = model.run(first.input, capture=["block_out.5"], positions=[-1]).cache["block_out.5"][0]
    print(
        json.dumps(
            {
                "restarted": int(uptime < time.monotonic() - began),
                "samples": len(whole),
                "scored": int(column.notna().sum()) if column is not None else 0,
                "accuracy": accuracy(base),
                "zero": sum(a != b for a, b in zip(answers(base), answers(zero))),
                "strong": accuracy(strong),
                "repeated": sum(a != b for a, b in zip(answers(base), answers(killed)[:12])),
                "mean": abs(mean_scores(report)["invented"] - sum(scores) / len(scores)),
                "capture": float(np.abs(row - again).max()),
            }
        )
    )
    model.close()


if __name__ == "__main__":
    sys.exit(main())
