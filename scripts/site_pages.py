"""Hooks of MkDocs: pages of the site that lie outside of docs/, and links between all of them.

A link to a file that is a page of the site leads to that page. One to another file of the repository becomes its text: the site stands by
itself, and may belong to no host of code. One to a file that does not exist stays, and MkDocs complains.
"""
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/README.md": "benchmarks.md",
    "generated_tests/README.md": "tests.md",
    "templates/text/README.md": "support_text.md",
    **{f"examples/{path.parent.name}/README.md": f"examples/{path.parent.name}.md" for path in (ROOT / "examples").glob("*/README.md")},
}
SOURCES = {page: source for source, page in PAGES.items()}


def on_files(files, config):
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def page_of(source):
    """The page of the site that a file of the repository is, or None."""
    if str(source) in PAGES:
        return PAGES[str(source)]
    return str(source.relative_to("docs")) if source.parts[0] == "docs" and source.suffix == ".md" else None


def way(page, target):
    """The relative link between two pages."""
    up = "../" * (len(Path(page).parts) - 1)
    return up + target


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    source = Path(SOURCES.get(here, "docs/" + here))

    def replaced(match):
        text, link = match[1], match[2]
        path, _, anchor = link.partition("#")
        if not path or re.match(r"\w+:", link):
            return match[0]
        if not (ROOT / source.parent / path).exists():
            return match[0]
        target = (ROOT / source.parent / path).resolve().relative_to(ROOT)
        if (ROOT / target / "README.md").exists():
            target /= "README.md"
        found = page_of(target)
        return f"[{text}]({way(here, found)}{'#' + anchor if anchor else ''})" if found else text

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.S | re.M)  # blocks stay as they are
    return "".join(p if p.startswith("```") else re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", replaced, p) for p in parts)
