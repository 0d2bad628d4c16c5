"""docs/tour.md is what `make screenshots` writes: its list of pictures is the command's own."""

import pathlib
import re

from gallery import tour
from gallery.camera import LOOKS
from gallery.shots import SHOTS

ROOT = pathlib.Path(__file__).parent.parent


def test_the_tour_is_as_the_command_writes_it_and_its_pictures_are_there() -> None:
    written = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    assert written == tour.text(tour.TOUR), "run `make screenshots`"
    there = {f"tour/{path.name}" for path in (ROOT / "docs" / "tour").iterdir()}
    assert there == set(re.findall(r'src="(tour/[^"]+)"', written))
    for file in there:
        picture = (ROOT / "docs" / file).read_bytes()
        assert picture[8:12] == b"WEBP", file
        assert len(picture) <= tour.MOST_BYTES, file


def test_every_picture_of_the_tour_is_one_that_the_command_takes() -> None:
    taken, looks = {shot.name for shot in SHOTS}, {look.name for look in LOOKS}
    assert len(taken) == len(SHOTS)
    assert {kept.shot for kept in tour.TOUR} <= taken
    assert {kept.look for kept in tour.TOUR} <= looks
    assert len({kept.file for kept in tour.TOUR}) == len(tour.TOUR)


def test_the_readme_shows_pictures_of_the_tour() -> None:
    shown = re.findall(r"docs/(tour/[\w-]+\.webp)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown
    assert set(shown) <= {kept.file for kept in tour.TOUR}
