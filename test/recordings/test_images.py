"""Folders of images: order, rate, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from clips import colour_of, write_images
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.images import ImageFolder
from densereward_ros.recordings.opening import open_recording


def test_order_and_times(tmp_path):
    """frame2 comes before frame10; times follow from the rate that is given."""
    folder = open_recording(write_images(tmp_path / 'run', 12), rate=4.0)
    frames = list(folder.frames())
    assert [seconds for seconds, _ in frames] == [index / 4 for index in range(12)]
    for index, (_, image) in enumerate(frames):
        assert image.dtype == np.uint8 and (image == colour_of(index)).all()
    assert (folder.name, folder.rate) == ('run', 4.0)


def test_mixed_files(tmp_path):
    """Other files are passed over; grey and transparent pictures become RGB; zeros in front do not matter."""
    Image.new('L', (8, 6), 77).save(tmp_path / '002.png')
    Image.new('RGBA', (8, 6), (1, 2, 3, 128)).save(tmp_path / '01.png')
    Image.new('RGB', (8, 6), (200, 0, 0)).save(tmp_path / '10.BMP')
    (tmp_path / 'notes.txt').write_text('a note')
    colours = [tuple(image[0, 0]) for _, image in ImageFolder(tmp_path, 1.0).frames()]
    assert colours == [(1, 2, 3), (77, 77, 77), (200, 0, 0)]


def test_turned_photograph(tmp_path):
    """A photograph that says how it is to be turned is turned."""
    picture = Image.new('RGB', (8, 4), (255, 0, 0))
    exif = picture.getexif()
    exif[0x0112] = 6  # turn by a quarter
    picture.save(tmp_path / 'a.jpg', exif=exif)
    (_, image), = ImageFolder(tmp_path, 1.0).frames()
    assert image.shape == (8, 4, 3)


@pytest.mark.parametrize('rate', [0.0, -1.0, float('nan')])
def test_needs_a_rate(tmp_path, rate):
    """A folder has no rate of its own."""
    write_images(tmp_path / 'run', 2)
    with pytest.raises(RecordingError, match=f'the rate given is {rate}; allowed is a rate above 0'):
        open_recording(tmp_path / 'run', rate)


def test_refused(tmp_path):
    """An empty folder, a broken image and a depth image: one line each, with the file's name."""
    with pytest.raises(RecordingError, match='no image in this folder; allowed are .png'):
        ImageFolder(tmp_path, 1.0)
    broken = tmp_path / 'a.png'
    broken.write_bytes(b'no picture')
    with pytest.raises(RecordingError, match=r'a\.png: not an image that can be read'):
        ImageFolder(tmp_path, 1.0)
    Image.fromarray(np.full((4, 4), 3000, np.uint16)).save(broken)
    with pytest.raises(RecordingError, match=r'a\.png: a picture of mode I;16.*allowed are 8-bit pictures'):
        ImageFolder(tmp_path, 1.0)


def test_broken_later(tmp_path):
    """A folder is opened by its first image; a later broken one ends the reading where it stands."""
    write_images(tmp_path / 'run', 3)
    (tmp_path / 'run' / 'frame3.png').write_bytes(b'')
    frames = open_recording(tmp_path / 'run', 1.0).frames()
    next(frames)
    next(frames)
    with pytest.raises(RecordingError, match=r'frame3\.png'):
        next(frames)
