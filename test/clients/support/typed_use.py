"""A program that type checkers accept."""

from pathlib import Path

from agent_research import DraftMayExist, QuotaExceeded, ResearchClient
from agent_research.types import Entry, StudyPackage
from tapline_lab import AsyncLab, Job, Lab, ServingModel, TaplineError
from tapline_lab.types import Candidate, CompareResult, ProbeExample


def experiment(lab: Lab) -> list[float]:
    job: Job[CompareResult] = lab.compare("demo", "One", layers=[5], strengths=[0, 1])
    identifier: str = job["id"]
    done = lab.wait(job, timeout=60)
    lab.wait(identifier)
    downloaded: Path = lab.artifact(identifier, "a", "b")
    examples: list[ProbeExample] = [{"text": downloaded.name, "label": 1, "split": "train"}]
    probe = lab.wait(lab.probe("demo", examples))
    scores = [score["score"] for report in probe["result"]["reports"] for score in report["scores"]]
    return scores + [trial["delta"] for trial in done["result"]["trials"]]


async def concurrently(lab: AsyncLab) -> float:
    job: Job[CompareResult] = await lab.compare("demo", "One", layers=[5])
    done = await lab.wait(job)
    return done["result"]["trials"][0]["delta"]


def capture(serving: ServingModel) -> Candidate:
    try:
        return serving.inspect("One", layers=[0, 1])["next_tokens"][0]
    except TaplineError as error:
        status: int | None = error.status
        raise SystemExit(str(status)) from error


def publish(client: ResearchClient, entry: Entry, package: StudyPackage) -> str:
    package["entries"].append(entry)
    for item in client.list_studies(query="x", limit=5)["items"]:
        name: str = client.get_study(item["id"])["author"]["name"]
        package["omissions"].append(name)
    try:
        return client.save_private_draft(package)["review_url"]
    except QuotaExceeded as error:
        wait: int | None = error.retry_after
        return str(wait)
    except DraftMayExist as error:
        return error.idempotency_key
