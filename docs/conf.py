"""The documentation site: Markdown pages, tutorials that run, and a reference made from the package itself."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import oodscope

project, author = "oodscope", "The oodscope authors"
copyright = "The oodscope authors, Apache-2.0"
version = release = oodscope.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "docstrings",
    "reference",
    "results",
]
exclude_patterns = ["_build", "_ext", "tutorials"]
nitpicky = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"oodscope {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sphinx = False
html_theme_options = {"footer_icons": []}
suppress_warnings = ["myst.header"]

extensions.append("sphinx_gallery.gen_gallery")
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": os.environ.get("OODSCOPE_DOCS_RUN", "1") == "1",  # without it the tutorials are shown, not run
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("processor.clock",),
    "reset_modules_order": "both",
}
