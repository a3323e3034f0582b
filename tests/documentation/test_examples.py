"""Every example of the gallery runs, and draws the picture that its page shows."""

import importlib.util
import runpy
from pathlib import Path

import pytest
from matplotlib.image import imread

ROOT = Path(__file__).resolve().parents[2]
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))

pytestmark = pytest.mark.jit_only


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_the_example_draws_its_picture(script, tmp_path):
    spec = importlib.util.spec_from_file_location(f"gallery_{script.stem}", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(tmp_path / "picture.png"))
    drawn = imread(tmp_path / "picture.png")
    kept = imread(ROOT / "docs" / "images" / "gallery" / f"{script.stem}.png")
    assert drawn.shape == kept.shape
    assert drawn.std() > 0.05  # something is in it


def test_every_example_is_in_the_gallery():
    page = (ROOT / "docs" / "examples" / "gallery.md").read_text("utf-8")
    for script in GALLERY:
        assert f"images/gallery/{script.stem}.png" in page


def test_pictures_of_the_front_page_show_todays_report():
    names = runpy.run_path(str(ROOT / "examples" / "front_page_picture.py"))
    kept = (ROOT / "docs" / "images" / "report.sha256").read_text("utf-8").strip()
    assert names["digest"](names["make_report"]()) == kept, "run examples/front_page_picture.py"
