"""What JPEG costs: verdicts on pictures that travelled as JPEG against those that travelled as PNG.

`python benchmark/jpeg.py` prints a table and writes benchmark/jpeg.json. The pictures go through the code
that sends them to a server and back; PNG is then what a local model sees, to the bit. `--videos FOLDER`
adds the size of frames of real recordings.
"""

from __future__ import annotations

import argparse
import base64
import io
import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.models.served_files import ServedFiles
from densereward_ros.models.server_request import Pictures
from densereward_ros.tabletop.evaluation import held_out_episode, windows
from densereward_ros.types import Frame, MalformedReply, Verdict, Window

RESULTS = Path(__file__).with_name('jpeg.json')
QUALITIES = (95, 90, 80)
FORMATS = {'png': ModelOptions(), **{
    f'jpeg {quality}': ModelOptions(image_format='jpeg', jpeg_quality=quality) for quality in QUALITIES}}
FRAMES_OF_A_VIDEO = 20


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--windows', type=int, default=400, metavar='N', help='(default: %(default)s)')
    parser.add_argument('--videos', type=Path, metavar='FOLDER', help='a folder of .mp4 files')
    parser.add_argument('--output', type=Path, default=RESULTS, metavar='FILE', help='(default: %(default)s)')
    arguments = parser.parse_args()
    chosen = list(itertools.islice(tabletop_windows(), arguments.windows))
    model = open_model(ModelOptions(model='tabletop', device='cpu', dtype='float32'))
    exact = [model.score([window])[0] for window in chosen]
    results = {'windows': len(chosen), 'formats': {}}
    for name, options in FORMATS.items():
        travelled, sizes = travel(chosen, options)
        verdicts = [model.score([window])[0] for window in travelled]
        results['formats'][name] = figures = {**compared(exact, verdicts), 'bytes_a_frame': round(
            statistics.fmean(sizes))}
        print(f'{name:<8} {figures}', flush=True)
    if arguments.videos:
        results['videos'] = video_sizes(arguments.videos)
        print(json.dumps(results['videos'], indent=1))
    arguments.output.write_text(json.dumps(results, indent=1) + '\n')


def tabletop_windows() -> Iterator[Window]:
    """All windows of episode after episode that training never saw."""
    for number in itertools.count():
        for _, window in windows(held_out_episode(number)):
            yield window


def travel(sent: Sequence[Window], options: ModelOptions) -> tuple[list[Window], list[int]]:
    """The windows as a server gets them, and the bytes of each frame."""
    pictures = Pictures(options, ServedFiles(''))
    arrived: dict[Frame, Frame] = {}
    sizes = []
    for frame in dict.fromkeys(frame for window in sent for frame in window.frames):
        content = base64.b64decode(pictures.url(frame).partition('base64,')[2])
        sizes.append(len(content))
        image = np.asarray(Image.open(io.BytesIO(content)))
        arrived[frame] = Frame(frame.stamp_ns, frame.received_ns, lambda image=image: image)
    seen = [replace(window, frames=tuple(arrived[frame] for frame in window.frames)) for window in sent]
    return seen, sizes


def compared(exact: Sequence, verdicts: Sequence) -> dict[str, float]:
    """Words and rewards of two lists of replies."""
    pairs = [
        (one, other) for one, other in zip(exact, verdicts, strict=True)
        if isinstance(one, Verdict) and isinstance(other, Verdict)]
    differences = [abs(one.reward - other.reward) for one, other in pairs]
    return {
        'equal_words': round(sum(one.reason is other.reason for one, other in pairs) / len(pairs), 4),
        'mean_difference': round(statistics.fmean(differences), 4),
        'largest_difference': round(max(differences), 3),
        'malformed': sum(isinstance(reply, MalformedReply) for reply in verdicts)}


def video_sizes(folder: Path) -> dict[str, dict]:
    """The mean bytes of a frame of each video, by format."""
    from densereward_ros.recordings.opening import open_recording

    found = {}
    for file in sorted(folder.glob('*.mp4')):
        images = [image for _, image in itertools.islice(
            open_recording(file, 0.0).frames(), 0, FRAMES_OF_A_VIDEO * 5, 5)]
        height, width = images[0].shape[:2]
        frames = [Frame(stamp, stamp, lambda image=image: image) for stamp, image in enumerate(images)]
        found[f'{width}x{height} {file.name}'] = {
            name: round(statistics.fmean(
                3 * len(Pictures(options, ServedFiles('')).url(frame)) / 4 for frame in frames))
            for name, options in FORMATS.items()}
    return found


if __name__ == '__main__':
    main()
