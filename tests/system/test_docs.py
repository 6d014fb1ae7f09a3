"""The documentation is a site that builds, loads nothing from other hosts, and whose examples run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASSET = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc="?([^"\s>]+)|<link[^>]*\shref="?([^"\s>]+)""")


def build(project: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the site is made from."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copytree(ROOT / "examples" / "server", folder / "examples" / "server")
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    return folder


def test_the_site_builds_and_loads_nothing_from_other_hosts(project: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    built = build(project, site)

    assert built.returncode == 0, built.stdout + built.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    assets = {found for page in pages for match in ASSET.findall(page.read_text()) for found in match if found}
    assert [asset for asset in assets if re.match(r"(https?:)?//", asset)] == []
    # The theme loads its diagram library from a CDN when a page has such a diagram.
    assert [page.name for page in pages if 'class="mermaid"' in page.read_text()] == []


@pytest.mark.parametrize(
    ("page", "text", "problem"),
    [
        ("quickstart.md", "[gone](guides/no-such-page.md)", "no-such-page.md"),
        ("quickstart.md", "[gone](guides/recover.md#no-such-heading)", "no-such-heading"),
        ("quickstart.md", "![gone](images/no-such-picture.png)", "no-such-picture.png"),
        ("orphan.md", "# A page that the navigation does not list", "orphan.md"),
    ],
    ids=["page", "anchor", "picture", "orphan"],
)
def test_a_broken_link_fails_the_build(project: Path, tmp_path: Path, page: str, text: str, problem: str) -> None:
    with (project / "docs" / page).open("a") as file:
        file.write(f"\n{text}\n")
    built = build(project, tmp_path / "site")

    assert built.returncode != 0
    assert problem in built.stdout + built.stderr


def test_the_tests_of_the_pipeline_guide_pass(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "add-a-pipeline.md").read_text()
    declared, *_, tested = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    (tmp_path / "test_guide.py").write_text(declared + tested)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_guide.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout
