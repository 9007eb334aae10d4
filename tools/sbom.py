"""Write a bill of materials (CycloneDX) of the core and of every extra into dist/sbom: ``make sbom``.

pip resolves the packages with the pins of constraints.txt, without installing them; cyclonedx-py describes them. The
JavaScript libraries in ``report/vendor`` are part of every installation, so they are in every bill.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from environments import CONSTRAINTS, ROOT, USER_EXTRAS, run

VENDOR = ROOT / "src" / "ptad" / "report" / "vendor"
OUT = ROOT / "dist" / "sbom"


def resolve(extra: str) -> list[dict[str, Any]]:
    """Return the packages that pip would install for ptad with an extra ("" for the core), with metadata."""
    options = ["--dry-run", "--ignore-installed", "--no-build-isolation", "--constraint", str(CONSTRAINTS)]
    pip = [sys.executable, "-m", "pip", "install", "-qq", *options, "--report", "-"]
    packages: list[dict[str, Any]] = json.loads(run(*pip, f".[{extra}]" if extra else "."))["install"]
    return [package for package in packages if package["metadata"]["name"] != "ptad"]


def vendored() -> list[dict[str, Any]]:
    """Return the JavaScript libraries as components, from the table in their folder's README."""
    components = []
    for line in (VENDOR / "README.md").read_text("utf-8").splitlines():
        if not line.startswith("| `"):
            continue
        file, origin, licences = (cell.strip(" `") for cell in line.strip("|").split("|"))
        path = VENDOR / file
        for name, version in re.findall(r"(htm|preact|uplot) (\d[\d.]*)", origin):
            licence = re.search(rf"LICENSE.{name}` \(([^)]+)\)", licences)
            if licence is None:
                raise SystemExit(f"{VENDOR / 'README.md'} does not name the licence of {name}")
            components.append(
                {
                    "type": "library",
                    "bom-ref": f"vendored-{file}-{name}",
                    "name": name,
                    "version": version,
                    "purl": f"pkg:npm/{name}@{version}",
                    "description": f"vendored as {path.relative_to(ROOT)}",
                    "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
                    "licenses": [{"license": {"name": licence[1]}}],
                }
            )
    return components


def licence_of(metadata: dict[str, Any]) -> str:
    """Return the licence of a package, "" if its metadata names none."""
    name = metadata.get("license_expression") or metadata.get("license")
    classifiers = [line for line in metadata.get("classifier", ()) if line.startswith("License ::")]
    text = name or ", ".join(line.rpartition(" :: ")[2] for line in classifiers)
    return text.strip().partition("\n")[0]  # an old field may hold the whole text, which begins with the name


def bill_of_materials(packages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what cyclonedx-py says about these packages, with their licences and the vendored libraries."""
    lines, licences = [], {}
    for package in packages:
        metadata = package["metadata"]
        digest = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        lines.append(f"{metadata['name']}=={metadata['version']}" + (f" --hash=sha256:{digest}" if digest else ""))
        licences[metadata["name"]] = licence_of(metadata)
    program = str(Path(sys.executable).with_name("cyclonedx-py"))
    options = ["--pyproject", "pyproject.toml", "--mc-type", "library", "--output-reproducible"]
    bill: dict[str, Any] = json.loads(run(program, "requirements", *options, "-", stdin="\n".join(lines)))
    for component in bill["components"]:
        if licence := licences.get(component["name"]):
            component["licenses"] = [{"license": {"name": licence}}]
    bill["components"] += vendored()
    return bill


def main() -> None:
    """Write and validate one bill per set of packages."""
    OUT.mkdir(parents=True, exist_ok=True)
    for extra in ("", *USER_EXTRAS):
        bill = bill_of_materials(resolve(extra))
        text = json.dumps(bill, indent=2)
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
            raise SystemExit(f"not valid CycloneDX: {error}")
        path = OUT / f"{extra or 'core'}.cdx.json"
        path.write_text(text + "\n", "utf-8")
        print(f"{path.relative_to(ROOT)}: {len(bill['components'])} components", flush=True)


if __name__ == "__main__":
    main()
