"""The table of all engines' answers, as Markdown."""

import json

from suite.engines import ENGINES

INTRODUCTION = """\
# Conformance: does the tap lie?

Every engine gets the same tiny models and the same questions; nothing in the suite knows which engine it asks. This page is written by
`npm run conformance`; [the suite](../conformance/README.md) explains the questions, and how to ask another engine.

Numbers count the cases that the engine answers correctly, out of all cases. A dash means that the engine has no way to express the question.
Bold numbers count wrong answers; each is listed below with the request that shows it. The mistakes that can be reported depend on the engine's
interface, so the numbers in the last row cannot be compared with each other.
"""


def tally(answers):
    count = lambda kind: sum(each["answer"] == kind for each in answers.values())  # noqa: E731
    return count("right"), count("wrong"), len(answers)


def cell(answers):
    if not answers:
        return "not asked"
    right, wrong, all_cases = tally(answers)
    if wrong:
        return f"{right} of {all_cases}, **{wrong} wrong**"
    if right == 0:
        return "–"
    return f"✓ {right}" if right == all_cases else f"{right} of {all_cases}"


def summary(saved):
    questions = list(dict.fromkeys(question for each in saved for question in each["questions"]))
    lines = ["| | " + " | ".join(ENGINES[each["engine"]].title for each in saved) + " |"]
    lines.append("| --- |" + " --- |" * len(saved))
    for question in questions:
        cells = [cell(each["questions"].get(question, {})) for each in saved]
        lines.append(f"| {question} | " + " | ".join(cells) + " |")
    return lines


def grouped(answers, kind):
    """Cases by their explanation."""
    found = {}
    for case, each in answers.items():
        if each["answer"] == kind:
            found.setdefault(each["why"], []).append((case, each.get("case") or {}))
    return found


def listed(cases):
    names = [name for name, _ in cases]
    return "; ".join(names) if len(names) <= 3 else f"{names[0]}; and {len(names) - 1} more"


def wrong(saved):
    lines = ["", "## Wrong answers", ""]
    for each in saved:
        found = [(question, why, cases) for question, answers in each["questions"].items() for why, cases in grouped(answers, "wrong").items()]
        if not found:
            continue
        lines += [f"### {ENGINES[each['engine']].title}", ""]
        for question, why, cases in found:
            lines.append(f"- {question} ({listed(cases)}): {why}")
            requests = [case["request"] for _, case in cases if "request" in case]
            for shown in requests or [json.dumps(cases[0][1])]:
                lines += ["", f"      {shown}"]
            lines.append("")
        lines.append("")
    return lines if len(lines) > 3 else [*lines, "None.", ""]


def not_offered(saved):
    lines = ["## Not offered", "", "| Engine | Question | Cases | Why |", "| --- | --- | --- | --- |"]
    for each in saved:
        for question, answers in each["questions"].items():
            for why, cases in grouped(answers, "not offered").items():
                lines.append(f"| {ENGINES[each['engine']].title} | {question} | {len(cases)} | {why} |")
    return lines


def write_table(path, saved):
    versions = ", ".join(f"{ENGINES[each['engine']].title} {each['version']}".strip() for each in saved)
    lines = [INTRODUCTION, *summary(saved), "", f"Versions: {versions}. All ran on a CPU.", *wrong(saved), *not_offered(saved), ""]
    with open(path, "w") as file:
        file.write("\n".join(lines))
