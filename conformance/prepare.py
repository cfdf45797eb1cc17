"""Writes the tiny models as GGUF files and Hugging Face folders, and checks that they are those of the expected values:

    python prepare.py MODELS_FOLDER [LLAMA_QUANTIZE]
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from suite import hugging_face, models  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def main(folder, quantize=None):
    os.makedirs(folder, exist_ok=True)
    for name, model in models.MODELS.items():
        path = models.gguf_path(folder, name)
        with open(os.path.join(HERE, "models", f"{name}.json")) as file:
            recorded = json.load(file)
        if models.write_gguf(model, path) != recorded["sha256"]:
            raise SystemExit(f"{path} differs from the model whose values are in models/{name}.json.")
        hugging_face.write(model, os.path.join(folder, name))
        for form in recorded.get("forms", {}) if quantize else []:
            to = models.gguf_path(folder, name, form)
            subprocess.run([quantize, path, to, form], check=True, capture_output=True)


main(*sys.argv[1:])
