"""Build sdist and wheel, install the wheel where nothing else is, and use it: ``make dist``.

Fails if the wheel misses a tracked file of the package, if the sdist builds another wheel, if the core pulls torch, or
if the demo, the service or a file of its page does not work away from the checkout.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

from environments import ROOT, Environment, clean_variables, without

DIST = ROOT / "dist"
#: What a page or a module refers to: a script, a style, another module.
REFERENCE = re.compile(r'(?:src|href)="([^"]+)"|^(?:import|export) [^;]*?[\'"](\./[^\'"]+)[\'"];', re.MULTILINE)


def call(*command: str) -> str:
    """Run a program of this environment in the checkout."""
    done = subprocess.run(command, cwd=ROOT, env=clean_variables(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def files_of(wheel: Path) -> set[str]:
    """Names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def build() -> Path:
    """Build the sdist, and from it the wheel; compare with the wheel of the checkout and with what git tracks."""
    for stale in (DIST, ROOT / "build"):
        shutil.rmtree(stale, ignore_errors=True)
    builder = (sys.executable, "-m", "build", "--no-isolation")
    call(*builder)
    (wheel,) = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        call(*builder, "--wheel", "--outdir", folder)
        direct = files_of(next(Path(folder).glob("*.whl")))
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    if different := files_of(wheel) ^ direct:
        raise SystemExit(f"the wheel of the sdist and that of the checkout differ: {sorted(different)}")
    tracked = {name.removeprefix("src/") for name in call("git", "ls-files", "src").splitlines()}
    packed = {name for name in files_of(wheel) if name.startswith("ptad/")}
    if different := packed ^ tracked:
        raise SystemExit(f"the wheel and the tracked files differ: {sorted(different)}")
    print(f"{wheel.name}: {len(packed)} files, all that git tracks; the sdist builds the same")
    call(sys.executable, "-m", "twine", "check", "--strict", *map(str, DIST.iterdir()))
    print("twine check --strict: passed")
    return wheel


@contextlib.contextmanager
def service(environment: Environment) -> Iterator[str]:
    """Address of a service that runs from the installed wheel."""
    log = environment.folder / "log"
    with log.open("w") as file:
        process = environment.start("ptad", "serve", "--port", "0", "--store", "store", stderr=file)
    try:
        while "ready:" not in log.read_text():
            if process.poll() is not None:
                raise SystemExit(f"ptad serve ended:\n{log.read_text()}")
            time.sleep(0.1)
        yield re.findall(r"http://\S+", log.read_text())[0].rstrip("/")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def crawl(address: str) -> dict[str, int]:
    """Fetch the pages and every file that they refer to, from file to file; their sizes by path."""
    sizes: dict[str, int] = {}
    waiting = ["/", "/docs", "/health", "/openapi.json"]
    while waiting:
        path = waiting.pop()
        if path in sizes:
            continue
        with urllib.request.urlopen(address + path) as answer:  # an error of HTTP is raised
            text = answer.read().decode()
        sizes[path] = len(text)
        if path.endswith((".json", "health")):
            continue
        for found in REFERENCE.finditer(text):
            target = urllib.parse.urljoin(path, found[1] or found[2])
            if target.endswith((".js", ".css")):
                waiting.append(target)
    return sizes


def use_core(wheel: Path) -> None:
    """Install the wheel alone; run the demo."""
    with Environment() as environment:
        environment.install(str(wheel))
        installed = environment.installed()
        without({"torch"}, installed)
        print(f"installed alone: {len(installed)} packages, no torch: {', '.join(sorted(installed))}")
        place = environment.run("python", "-c", "import ptad; print(ptad.__file__)").strip()
        if not place.startswith(str(environment.bin.parent)):
            raise SystemExit(f"ptad was imported from {place}, not from the wheel")
        found = json.loads(environment.run("ptad", "demo", "--quiet", "--json"))
        print(f"ptad demo: AUC-ROC {found['evaluation']['auc_roc']:.3f} on {found['evaluation']['rows']} rows")
        print(f"python -m ptad --version: {environment.run('python', '-m', 'ptad', '--version').strip()}")
        rows = "\n".join(f"{i % 7},{i % 11}" for i in range(300))
        (environment.folder / "rows.csv").write_text(f"a,b\n{rows}\n")
        environment.run("ptad", "fit", "rows.csv", "--out", "model", "--quiet")
        environment.run("ptad", "report", "model", "rows.csv", "--out", "report.html", "--quiet")
        print(f"ptad report: {(environment.folder / 'report.html').stat().st_size:,} bytes")
        # there are no tables here, which it says; it knows them from a list that comes along
        said = environment.run("ptad", "benchmark", "data", ".", code=2).splitlines()[0]
        print(f"ptad benchmark data: {said}")


def use_service(wheel: Path) -> None:
    """Install the wheel with the extra ``serve``; fetch the pages and their files."""
    with Environment() as environment:
        environment.install(f"ptad[serve] @ {wheel.as_uri()}")
        without({"torch"}, environment.installed())
        with service(environment) as address:
            sizes = crawl(address)
        if empty := [path for path, size in sizes.items() if not size]:
            raise SystemExit(f"empty answers: {empty}")
        scripts = sum(path.startswith("/page/") for path in sizes)
        print(f"ptad serve: {len(sizes)} addresses answered, {scripts} of them files of the page")


def main() -> None:
    """Build and check."""
    wheel = build()
    use_core(wheel)
    use_service(wheel)
    print("make dist: all is well")


if __name__ == "__main__":
    main()
