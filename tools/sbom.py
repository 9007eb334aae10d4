"""List the parts of the core and of each extra's set as CycloneDX: ``make sbom``, into dist/sbom.

pip resolves every set with the pins of constraints.txt, without installing it; cyclonedx-py makes the list. The
JavaScript libraries in ``report/vendor`` are part of every installation, so they are in every list.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from environments import CONSTRAINTS, ROOT, clean_variables, user_extras

VENDOR = ROOT / "src" / "ptad" / "report" / "vendor"
OUT = ROOT / "dist" / "sbom"


def resolved(extra: str) -> list[dict[str, Any]]:
    """What pip would install for ptad with an extra ("" for the core), with metadata."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "install", "--dry-run"]
    options = ["--ignore-installed", "--no-build-isolation", "--constraint", str(CONSTRAINTS), "--report", "-"]
    command = [*pip, *options, f".[{extra}]" if extra else "."]
    found = subprocess.run(command, cwd=ROOT, env=clean_variables(), capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"pip could not resolve {extra or 'the core'}:\n{found.stderr}")
    packages: list[dict[str, Any]] = json.loads(found.stdout)["install"]
    return [package for package in packages if package["metadata"]["name"] != "ptad"]


def vendored() -> list[dict[str, Any]]:
    """The JavaScript libraries, as the table of their folder names them."""
    parts = []
    for line in (VENDOR / "README.md").read_text("utf-8").splitlines():
        if not line.startswith("| `"):
            continue
        file, origin, licences = (cell.strip() for cell in line.strip("|").split("|"))
        digest = hashlib.sha256((VENDOR / file.strip("`")).read_bytes()).hexdigest()
        for name, version in re.findall(r"(htm|preact|uplot) (\d[\d.]*)", origin):
            spoken = re.search(rf"`LICENSE.{name}` \(([^)]+)\)", licences)
            if spoken is None:
                raise SystemExit(f"{VENDOR / 'README.md'} does not name the licence of {name}")
            parts.append(
                {
                    "type": "library",
                    "bom-ref": f"vendored-{file.strip('`')}-{name}",
                    "name": name,
                    "version": version,
                    "purl": f"pkg:npm/{name}@{version}",
                    "description": f"vendored as {(VENDOR / file.strip('`')).relative_to(ROOT)}",
                    "hashes": [{"alg": "SHA-256", "content": digest}],
                    "licenses": [{"license": {"name": spoken[1]}}],
                }
            )
    return parts


def listed(packages: list[dict[str, Any]]) -> dict[str, Any]:
    """The list that cyclonedx-py makes of these packages, with their licences and the vendored libraries."""
    lines, licences = [], {}
    for package in packages:
        metadata = package["metadata"]
        digest = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        lines.append(f"{metadata['name']}=={metadata['version']}" + (f" --hash=sha256:{digest}" if digest else ""))
        named = metadata.get("license_expression") or metadata.get("license")
        classes = [
            line.rpartition(" :: ")[2] for line in metadata.get("classifier", ()) if line.startswith("License ::")
        ]
        if named or classes:  # an old field may hold the whole text: its first line says which it is
            licences[metadata["name"]] = (named or ", ".join(classes)).strip().splitlines()[0]
    program = str(Path(sys.executable).with_name("cyclonedx-py"))
    command = [
        program,
        "requirements",
        "--pyproject",
        "pyproject.toml",
        "--mc-type",
        "library",
        "--output-reproducible",
    ]
    made = subprocess.run([*command, "-"], cwd=ROOT, input="\n".join(lines), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(made.stdout)
    for component in found["components"]:
        if component["name"] in licences:
            component["licenses"] = [{"license": {"name": licences[component["name"]]}}]
    found["components"] += vendored()
    return found


def main() -> None:
    """Write and validate one list per set."""
    OUT.mkdir(parents=True, exist_ok=True)
    for extra in ("", *user_extras()):
        text = json.dumps(listed(resolved(extra)), indent=2)
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
            raise SystemExit(f"not valid CycloneDX: {error}")
        path = OUT / f"{extra or 'core'}.cdx.json"
        path.write_text(text + "\n", "utf-8")
        print(f"{path.relative_to(ROOT)}: {len(json.loads(text)['components'])} components", flush=True)


if __name__ == "__main__":
    main()
