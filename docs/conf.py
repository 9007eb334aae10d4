"""Configuration of the site: ``make docs`` builds it into build/docs, without a network; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from ptad import __version__

matplotlib.use("agg")
sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "ptad"
author = "The ptad developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "generated",
]

smartquotes = False  # keeps the two dashes of options

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # generated tables have headings of the third level

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types are in the numpydoc sections
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "generated.example_order",
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "ptad"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"getting-started": []}  # it has no neighbours
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
}
