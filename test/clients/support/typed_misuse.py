"""Each marked line is an error that the packages' types let a checker find."""

from agent_research import ResearchClient
from tapline_lab import Lab, ServingModel


def mistakes(lab: Lab, serving: ServingModel, client: ResearchClient) -> None:
    lab.wait(7)  # wrong
    lab.inspect("demo")  # wrong
    lab.wait(lab.inspect("demo", "One"))["result"]["trials"]  # wrong
    lab.wait(lab.sae("demo", []))["result"]["reports"][0]["loss"]  # wrong
    lab.probe("demo", [{"text": "One", "label": 2, "split": "train"}])  # wrong
    lab.delete("id")  # wrong
    serving.inspect("One", layers=["0"])  # wrong
    serving.capabilities()["name"]  # wrong
    client.list_studies("steering")  # wrong
    client.get_study(7)  # wrong
    client.save_private_draft([])  # wrong
    client.publish("id")  # wrong
