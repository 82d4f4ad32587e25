"""A journal is whole whatever happens to the process that writes it."""

from __future__ import annotations

import json
import os
import resource
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.recordings.base import RecordingError
from densereward_ros.results.rows import ScoredFrame
from densereward_ros.scoring.journal import Journal, read_journal
from densereward_ros.types import Reason

HEAD = {'name': 'a', 'source': 'a.mp4', 'camera': '', 'task': 'stück', 'index': None}


def frame(number: int) -> ScoredFrame:
    """A frame with numbers that only their exact text brings back."""
    return ScoredFrame(
        frame=number, stamp_ns=3 * 10**18 + number, seconds=number / 3, segment=number // 4,
        reward=None if number % 5 == 4 else 1 / (3 + number), reason=Reason(number % 7),
        reason_probabilities=None if number % 3 else (0.1, 0.2, 1e-17, 0.0, 1 / 3, 0.3),
        malformed='no number: \'x\'\n"' if number % 5 == 4 else '', log_ns=17 + number,
        window_ns=(1, 2, 3 * 10**18 + number))


def write(file, batches: int, end: bool = True) -> list[ScoredFrame]:
    """A journal of so many batches of two frames."""
    with Journal(file, HEAD) as journal:
        for number in range(len(journal.recorded.frames) // 2, batches):
            journal.add([frame(2 * number), frame(2 * number + 1)], True, 0.25)
        if end:
            journal.complete(3)
    return [frame(number) for number in range(2 * batches)]


def test_what_was_written_comes_back(tmp_path):
    """To the last bit."""
    frames = write(tmp_path / 'a', 6)
    recorded = read_journal(tmp_path / 'a')
    assert recorded.frames == frames
    assert (recorded.head, recorded.complete, recorded.undecodable) == (HEAD, True, 3)
    assert (recorded.bounded, recorded.seconds, recorded.failed) == (True, 1.5, '')
    assert recorded.size == (tmp_path / 'a').stat().st_size
    with Journal(tmp_path / 'b', HEAD) as journal:
        journal.add([frame(0)], False, 0.25)
    assert not read_journal(tmp_path / 'b').bounded


@given(st.data())
def test_a_file_that_is_cut_anywhere_goes_on_as_if_it_were_not(tmp_path_factory, data):
    """A torn last line counts as never written; the rest then makes the file that it would have been."""
    folder = tmp_path_factory.mktemp('cut')
    frames = write(folder / 'whole', 4)
    whole = (folder / 'whole').read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    (folder / 'cut').write_bytes(whole[:cut])
    kept = read_journal(folder / 'cut').frames
    assert kept == frames[:len(kept)] and len(kept) % 2 == 0
    assert len(kept) // 2 == max(0, whole[:cut].count(b'\n') - 1) - (cut == len(whole))
    write(folder / 'cut', 4, end=cut < len(whole))
    assert (folder / 'cut').read_bytes() == whole


def test_a_last_line_of_zeros_is_torn_too(tmp_path):
    """As a power cut leaves it."""
    write(tmp_path / 'a', 2, end=False)
    whole = (tmp_path / 'a').read_bytes()
    (tmp_path / 'a').write_bytes(whole + b'\0' * 40 + b'\n')
    assert len(read_journal(tmp_path / 'a').frames) == 4
    write(tmp_path / 'a', 2, end=False)
    assert (tmp_path / 'a').read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_told(tmp_path):
    """It is no cut: something else wrote there."""
    write(tmp_path / 'a', 3)
    lines = (tmp_path / 'a').read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b'\n'
    (tmp_path / 'a').write_bytes(b''.join(lines))
    with pytest.raises(RecordingError, match='line 3 is damaged .*remove the file'):
        read_journal(tmp_path / 'a')
    with pytest.raises(RecordingError, match='line 3 is damaged'):
        Journal(tmp_path / 'a', HEAD)


def test_another_episode_and_one_that_failed_begin_anew(tmp_path):
    """A file may have been mended since."""
    write(tmp_path / 'a', 3)
    with Journal(tmp_path / 'a', {**HEAD, 'task': 'pour'}) as journal:
        assert journal.recorded.frames == []
        journal.add([frame(0)], True, 0.5)
        journal.fail('a.mp4: damaged')
    recorded = read_journal(tmp_path / 'a')
    assert (recorded.failed, recorded.head['task'], len(recorded.frames)) == ('a.mp4: damaged', 'pour', 1)
    with Journal(tmp_path / 'a', {**HEAD, 'task': 'pour'}) as journal:
        assert journal.recorded.frames == [] and not journal.recorded.failed


def test_one_process_at_a_time(tmp_path):
    """The second is told so; once the first has ended, or was killed, the file is free."""
    with Journal(tmp_path / 'a', HEAD):
        with pytest.raises(RecordingError, match='another process is scoring that episode'):
            Journal(tmp_path / 'a', HEAD)
    Journal(tmp_path / 'a', HEAD).close()


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    """What did not fit is not there in part, and the same journal goes on once there is room."""
    write(tmp_path / 'whole', 50)
    size = (tmp_path / 'whole').stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    try:
        with pytest.raises(RecordingError) as caught:
            write(tmp_path / 'a', 50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said = str(caught.value)
    assert said.startswith(f'{tmp_path / "a"}: cannot be written (File too large)')
    assert 'what was scored before is kept' in said and '\n' not in said
    assert size // 2 - 1000 < (tmp_path / 'a').stat().st_size <= size // 2
    assert (tmp_path / 'whole').read_bytes().startswith((tmp_path / 'a').read_bytes())
    write(tmp_path / 'a', 50)
    assert (tmp_path / 'a').read_bytes() == (tmp_path / 'whole').read_bytes()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    """A folder in the way; no rights are needed to be without."""
    (tmp_path / 'a').mkdir()
    with pytest.raises(RecordingError, match='cannot be written'):
        Journal(tmp_path / 'a', HEAD)


def test_lines_are_plain_json_for_others_too(tmp_path):
    """One object a line, text as it is, and the file is readable for whoever may read the folder."""
    write(tmp_path / 'a', 1)
    lines = (tmp_path / 'a').read_text(encoding='utf-8').splitlines()
    assert json.loads(lines[0]) == {'head': HEAD} and 'stück' in lines[0]
    assert set(json.loads(lines[1])) == {'seconds', 'bounded', 'frames'}
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / 'a').stat().st_mode) == 0o666 & ~mask
