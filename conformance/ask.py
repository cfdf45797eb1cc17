"""Asks one engine everything, in its own environment, and writes the answers as JSON:

    python ask.py ENGINE MODELS_FOLDER ANSWERS.json [--only QUESTION ...] [--case CASE]
"""

import argparse
import importlib
import json
import os
import sys
import traceback
from importlib.metadata import version

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from suite.engine import NotOffered  # noqa: E402
from suite.questions import QUESTIONS, Fault, Subject  # noqa: E402


def answer(ask):
    try:
        ask()
        return {"answer": "right"}
    except NotOffered as reason:
        return {"answer": "not offered", "why": str(reason)}
    except Fault as fault:
        return {"answer": "wrong", "why": str(fault), "case": fault.case}
    except SystemExit:
        raise
    except Exception as error:
        traceback.print_exc(limit=-4)
        lines = str(error).strip().split("\n")
        return {"answer": "wrong", "why": f"{type(error).__name__}: {lines[0][:300]}", "case": {}}


def cases_of(question, subject):
    """The cases of a question: a single one if the engine cannot even begin."""
    try:
        yield from question(subject)
    except NotOffered as reason:
        sentence = str(reason)

        def refuse():
            raise NotOffered(sentence)

        yield "everything", refuse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine")
    parser.add_argument("models")
    parser.add_argument("answers")
    parser.add_argument("--only", action="append", choices=list(QUESTIONS))
    parser.add_argument("--case", help="only cases whose name contains this")
    options = parser.parse_args()
    adapter = importlib.import_module(f"engines.{options.engine}").Adapter
    subject = Subject(adapter, options.models)
    found = {"engine": options.engine, "version": os.environ.get("CONFORMANCE_VERSION", ""), "questions": {}}
    if adapter.package:
        found["version"] = version(adapter.package)
    try:
        for name, question in QUESTIONS.items():
            if options.only and name not in options.only:
                continue
            cases = cases_of(question, subject)
            answers = {case: answer(ask) for case, ask in cases if options.case is None or options.case in case}
            found["questions"][name] = answers
            right = sum(each["answer"] == "right" for each in answers.values())
            print(f"{options.engine}: {name}: {right} of {len(answers)} right", flush=True)
    finally:
        subject.close()
    with open(options.answers, "w") as file:
        json.dump(found, file, indent=1)


main()
