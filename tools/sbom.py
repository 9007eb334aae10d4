"""Write a bill of materials (CycloneDX) of the core and of every extra into dist/sbom: ``make sbom``.

Each set of packages is installed into an empty environment, which cyclonedx-py describes. The JavaScript libraries in
``report/vendor`` are part of every installation, so they are in every bill.
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
from distribution import build
from environments import ROOT, USER_EXTRAS, Environment, run
from packaging.utils import canonicalize_name

VENDOR = ROOT / "src" / "ptad" / "report" / "vendor"
OUT = ROOT / "dist" / "sbom"
CYCLONEDX = [str(Path(sys.executable).with_name("cyclonedx-py")), "environment", "--output-reproducible"]
CYCLONEDX += ["--pyproject", "pyproject.toml", "--mc-type", "library"]


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


def bill_of_materials(extra: str, wheel: Path) -> dict[str, Any]:
    """Install ptad with an extra ("" for the core); return the bill, checked for completeness."""
    with Environment() as environment:
        environment.install(f"ptad[{extra}] @ {wheel.as_uri()}")
        installed = environment.installed()
        bill: dict[str, Any] = json.loads(run(*CYCLONEDX, str(environment.bin / "python")))
    version = installed.pop("ptad")
    if missing := set(installed) - {canonicalize_name(component["name"]) for component in bill["components"]}:
        raise SystemExit(f"installed, but not in the bill: {', '.join(sorted(missing))}")
    if nameless := [component["name"] for component in bill["components"] if not component.get("licenses")]:
        print(f"no licence in the metadata of: {', '.join(nameless)}")
    root = bill["metadata"]["component"]
    root["version"] = version  # dynamic in pyproject.toml
    libraries = vendored()
    bill["components"] += libraries
    (dependencies,) = (entry for entry in bill["dependencies"] if entry["ref"] == root["bom-ref"])
    dependencies["dependsOn"] += [library["bom-ref"] for library in libraries]
    bill["dependencies"] += [{"ref": library["bom-ref"]} for library in libraries]
    return bill


def main() -> None:
    """Write and validate one bill per set of packages."""
    wheel = build()
    OUT.mkdir()
    for extra in ("", *USER_EXTRAS):
        bill = bill_of_materials(extra, wheel)
        text = json.dumps(bill, indent=2)
        if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
            raise SystemExit(f"not valid CycloneDX: {error}")
        path = OUT / f"{extra or 'core'}.cdx.json"
        path.write_text(text + "\n", "utf-8")
        print(f"{path.relative_to(ROOT)}: {len(bill['components'])} components", flush=True)


if __name__ == "__main__":
    main()
