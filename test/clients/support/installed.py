"""What two distributions have put into this environment, as JSON."""

import importlib
import importlib.metadata
import json
import re

MODULES = {"tapline-lab": "tapline_lab", "agent-research-client": "agent_research"}
found = {}
for name, module in MODULES.items():
    distribution = importlib.metadata.distribution(name)
    paths = [str(path) for path in distribution.files or []]
    own = [path for path in paths if ".dist-info/" not in path and "__pycache__" not in path]
    found[name] = {
        "version": distribution.version,
        "module_version": importlib.import_module(module).__version__,
        "python": distribution.metadata["Requires-Python"],
        "needs": [need for need in distribution.requires or [] if "extra ==" not in need],
        "wheel": distribution.read_text("WHEEL"),
        "files": sorted(own),
        "licence": any(re.search(r"\.dist-info/(licenses/)?LICENSE$", path) for path in paths),
    }
print(json.dumps(found))
