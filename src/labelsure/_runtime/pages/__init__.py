"""Pages: what was found, as one HTML file that asks for nothing else."""

from labelsure._runtime.pages._html_page import Page

__all__ = ["Page"]
