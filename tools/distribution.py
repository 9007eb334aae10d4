"""Build sdist and wheel, install the wheel into an empty environment and use it: ``make dist``.

Fails if the wheel misses a tracked file of the package, if the sdist builds another wheel, if the core pulls torch, or
if the demo, the service or a file of its page does not work away from the checkout.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from environments import ROOT, Environment, check_without_torch, run

DIST = ROOT / "dist"
USES = Path(__file__).with_name("extra_uses.py")
BUILD = (sys.executable, "-m", "build", "--no-isolation")


def build() -> Path:
    """Build the sdist, and from it the wheel; return the wheel."""
    for stale in (DIST, ROOT / "build"):
        shutil.rmtree(stale, ignore_errors=True)
    run(*BUILD)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def file_names(wheel: Path) -> set[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def check_contents(wheel: Path) -> None:
    """Compare the wheel with one built from the checkout and with what git tracks; check what an index would show."""
    with tempfile.TemporaryDirectory() as folder:
        run(*BUILD, "--wheel", "--outdir", folder)
        direct = file_names(next(Path(folder).glob("*.whl")))
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    if different := file_names(wheel) ^ direct:
        raise SystemExit(f"the wheel of the sdist and that of the checkout differ: {sorted(different)}")
    tracked = {name.removeprefix("src/") for name in run("git", "ls-files", "src").splitlines()}
    packed = {name for name in file_names(wheel) if name.startswith("ptad/")}
    if different := packed ^ tracked:
        raise SystemExit(f"the wheel and the tracked files differ: {sorted(different)}")
    print(f"{wheel.name}: {len(packed)} files, all that git tracks; the sdist builds the same")
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, DIST.iterdir()))
    print("twine check --strict: passed", flush=True)


def use_core(wheel: Path) -> None:
    """Install the wheel alone; run the demo, a fit, a report and the list of benchmark tables."""
    with Environment() as environment:
        environment.install(str(wheel))
        installed = environment.installed()
        check_without_torch(installed)
        print(f"installed alone: {len(installed)} packages, no torch: {', '.join(sorted(installed))}", flush=True)
        place = environment.run("python", "-c", "import ptad; print(ptad.__file__)").strip()
        if not place.startswith(str(environment.bin.parent)):
            raise SystemExit(f"ptad was imported from {place}, not from the wheel")
        demo = json.loads(environment.run("ptad", "demo", "--quiet", "--json"))["evaluation"]
        print(f"ptad demo: AUC-ROC {demo['auc_roc']:.3f} on {demo['rows']} rows")
        print(f"python -m ptad --version: {environment.run('python', '-m', 'ptad', '--version').strip()}")
        rows = "\n".join(f"{i % 7},{i % 11}" for i in range(300))
        (environment.folder / "rows.csv").write_text(f"a,b\n{rows}\n")
        environment.run("ptad", "fit", "rows.csv", "--out", "model", "--quiet")
        environment.run("ptad", "report", "model", "rows.csv", "--out", "report.html", "--quiet")
        print(f"ptad report: {(environment.folder / 'report.html').stat().st_size:,} bytes")
        # the folder holds no tables, an error that is reported with the help of a bundled list
        message = environment.run("ptad", "benchmark", "data", ".", exit_code=2).splitlines()[0]
        print(f"ptad benchmark data: {message}", flush=True)


def use_extra(extra: str, wheel: Path) -> str:
    """Install the wheel with one extra and use it; return what came of it, with the number of packages."""
    with Environment() as environment:
        environment.install(f"ptad[{extra}] @ {wheel.as_uri()}")
        installed = environment.installed()
        if extra not in ("torch", "bench", "onnx"):
            check_without_torch(installed)
        outcome = environment.run("python", "-P", str(USES), extra).strip()
        return f"{outcome}; {len(installed)} packages"


def main() -> None:
    """Build and check."""
    wheel = build()
    check_contents(wheel)
    use_core(wheel)
    print(f"ptad serve: {use_extra('serve', wheel)}")
    print("make dist: passed")


if __name__ == "__main__":
    main()
