"""The files of a report, and reports on recordings that are gone or have changed."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from densereward_ros.recordings.base import RecordingError
from densereward_ros.report import page as page_module
from densereward_ros.report.episode import Pictures, episode_section
from densereward_ros.report.film import Still
from densereward_ros.report.page import bounded_of, in_full, page
from densereward_ros.report.writing import write_report
from densereward_ros.results.rows import Results
from densereward_ros.types import FAILURES, Frame, ImageError, Reason, Window
from made_scores import episode, rising

pytestmark = pytest.mark.slow  # together they take long

TWO = Results((episode('run/1', rising(12), {6: Reason.MISS}), episode('run/2', [None, *rising(9)])))


def window(frame) -> Window:
    """A window of three frames in one colour."""
    image = np.full((48, 64, 3), (200, 90, 40), np.uint8)
    return Window('', '', tuple(Frame(frame.stamp_ns - back, 0, lambda: image) for back in (2, 1, 0)))


def windows(scored):
    """As they were scored."""
    return map(window, scored.frames)


def files(folder: Path) -> list[str]:
    """The names of all files below a folder."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob('*') if file.is_file())


def test_what_a_report_consists_of(tmp_path):
    """A page, a picture and a video for each episode, which the page leads to; nothing else is left."""
    told = []
    written = write_report(TWO, tmp_path / 'report', 'out', windows, progress=told.append)
    assert files(tmp_path) == [
        'report/index.html', 'report/run/1.mp4', 'report/run/1.png', 'report/run/2.mp4', 'report/run/2.png']
    assert (written.pictures, written.videos, written.missing) == (2, 2, ())
    assert told == ['run/1', 'run/2']
    text = written.page.read_text(encoding='utf-8')
    assert re.findall('href="(run[^"]*)"', text) == ['run/1.png', 'run/1.mp4', 'run/2.png', 'run/2.mp4']
    assert text.count('<img ') == 16
    with Image.open(tmp_path / 'report' / 'run' / '1.png') as picture:
        assert (picture.format, picture.width) == ('PNG', 1660)


def test_without_videos(tmp_path):
    """None is made, and none is linked."""
    written = write_report(TWO, tmp_path, 'out', windows, video=False)
    assert files(tmp_path) == ['index.html', 'run/1.png', 'run/2.png']
    assert '.mp4' not in written.page.read_text(encoding='utf-8')


def gone(scored):
    """As of a recording that was deleted."""
    raise RecordingError(f'{scored.source}: no such file')


def shorter(scored):
    """As of a recording that was cut since it was scored."""
    return map(window, scored.frames[:-1])


def later(scored):
    """As of another recording of the same name."""
    for frame in scored.frames:
        moved = window(frame)
        yield Window('', '', tuple(Frame(each.stamp_ns + 5, 0, each.decode) for each in moved.frames))


def damaged(scored):
    """As of a recording with an image that cannot be decoded any more."""
    def broken():
        raise ImageError('not a JPEG')

    yield window(scored.frames[0])
    yield Window('', '', (Frame(scored.frames[1].stamp_ns, 0, broken),))


@pytest.mark.parametrize(('source', 'why'), [
    (gone, 'recordings/run/1: no such file'),
    (shorter, 'recordings/run/1: not as it was when it was scored: there is no window at 2.6 s'),
    (later, 'recordings/run/1: not as it was when it was scored: there is no window at 0.4 s'),
    (damaged, 'not a JPEG')])
def test_a_recording_that_is_gone(tmp_path, source, why):
    """The page has its rewards, and says why there are no images; the other episodes have theirs."""
    written = write_report(
        TWO, tmp_path, 'out', lambda scored: source(scored) if scored.name == 'run/1' else windows(scored))
    assert written.missing == (('run/1', why),)
    assert (written.pictures, written.videos) == (2, 1)
    text = written.page.read_text(encoding='utf-8')
    assert f'No pictures: {why}' in unescape(text)
    assert text.count('<img ') == 8 and text.count('class="curve"') >= 4
    assert files(tmp_path) == ['index.html', 'run/1.png', 'run/2.mp4', 'run/2.png']


@pytest.mark.parametrize('name', ['../out', '/tmp/out', 'a/../../b'])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path, name):
    """Results that somebody else made must not write anywhere."""
    with pytest.raises(RecordingError, match='an episode is called'):
        write_report(Results((episode(name, rising(3)),)), tmp_path / 'report', 'out', windows)
    assert files(tmp_path) == []


def test_a_full_disk_leaves_the_report_that_was_there(tmp_path, monkeypatch):
    """And nothing half-written beside it."""
    write_report(TWO, tmp_path, 'out', windows, video=False)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}

    def full(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'replace', full)
    with pytest.raises(OSError, match='No space left'):
        write_report(TWO, tmp_path, 'other', windows)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_long_tables_are_thinned_and_say_so():
    """What stands out stays: events, and the verdicts around a change of the reason."""
    scored = episode('x', rising(1000), {333: Reason.MISS})
    made = episode_section(scored, 1, Pictures(), True, 100, False)
    rows = [int(number) for number in re.findall(r'<tr><td class=n>(\d+)<', made.split('verdicts')[-1])]
    assert 50 <= len(rows) <= 100 and rows == sorted(rows)
    assert {2 * i + 4 for i in (332, 333, 334)} <= set(rows)
    assert f'Verdicts, {len(rows)} of 1000 rows' in made
    whole = episode_section(scored, 1, Pictures(), True, 1000, False)
    assert 'Verdicts, 1000 rows' in whole


def test_of_very_many_episodes_the_telling_ones_are_shown(monkeypatch):
    """Those with an event, a malformed reply or a label of failure, and then the first of the others."""
    episodes = [episode('fine', rising(3))] * 6
    episodes[3] = episode('event', rising(3), {1: Reason.FALL})
    episodes[5] = episode('malformed', [None])
    assert in_full(episodes) == [0, 1, 2, 3, 4, 5]
    monkeypatch.setattr(page_module, 'MOST_EPISODES', 4)
    assert in_full(episodes) == [0, 1, 3, 5]
    shown = page('out', Results(tuple(episodes)), lambda _: Pictures())
    assert re.findall('class="body" id="(e[0-9]*)"', shown) == ['e1', 'e2', 'e4', 'e6']
    assert re.findall('href="#(e[0-9]*)"', shown) == ['e1', 'e2', 'e4', 'e6']
    assert '4 of 6 episodes are shown in full' in shown


@pytest.mark.parametrize(('run', 'rewards', 'bounded'), [
    ({'bounded': False}, [0.5], False), ({'bounded': True}, [0.5], True), ({}, [0.0, 1.0], True),
    ({}, [0.5, -0.1], False), ({}, [None], True)])
def test_whether_rewards_are_bounded(run, rewards, bounded):
    """As the run says, and by the rewards where it does not."""
    assert bounded_of(Results((episode('x', rewards),), run)) is bounded


def test_the_page_of_a_long_run_has_a_bound(monkeypatch):
    """30 MB for 500 episodes with everything in them, and less than 1 kB for each episode beyond."""
    monkeypatch.setattr(page_module, 'MOST_EPISODES', 50)  # a tenth of it, which is quicker
    monkeypatch.setattr(page_module, 'MOST_ROWS', 2_000)
    flicker = [None if i % 23 == 5 else 0.5 + 0.4 * (i % 9) / 9 for i in range(1500)]
    dense = [episode(f'episode {k}', flicker, {i: FAILURES[i % 5] for i in range(9, 1500, 25)})
             for k in range(50)]
    full = Pictures(tuple(Still(seconds, 'x' * 3000, 256, 256) for seconds in range(8)))
    whole = len(page('out', Results(tuple(dense)), lambda _: full).encode())
    assert whole < 3_000_000
    quiet = [episode(f'quiet {k}', rising(30)) for k in range(100)]
    more = len(page('out', Results((*dense, *quiet)), lambda _: full).encode())
    assert (more - whole) / 100 < 1000


def test_the_provenance_is_all_there():
    """Models, hashes, options and version, lists cut where they are long."""
    run = {'model': 'tabletop', 'model_files': {'a.bin': 'f' * 64}, 'bounded': True,
           'inputs': list(range(99)), 'version': '1.2', 'undecodable': {}}
    text = unescape(re.sub('<[^>]*>', ' ', page('out', Results((), run), lambda _: Pictures())))
    text = ' '.join(text.split('Where the numbers come from')[1].split())
    assert text.startswith(f'model tabletop model files a.bin: {"f" * 64} bounded yes inputs 0 1 2')
    assert text.endswith('28 29 and 69 more in run.json version 1.2 undecodable –')
