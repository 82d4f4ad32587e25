"""What the words of a command line stand for."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from clips import write_images
from densereward_ros.cli.inputs import open_inputs
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.types import Reason
from recordings_made import image_message, write_bag

TASK = 'stack the cup'


def test_every_kind_of_input_in_order_with_names_of_its_own(tmp_path):
    """Folders of images, a bag of two cameras, the demo world; the same folder twice has two names."""
    (tmp_path / 'a').mkdir()
    (tmp_path / 'b').mkdir()
    one, two = write_images(tmp_path / 'a' / 'run', 4), write_images(tmp_path / 'b' / 'run', 4)
    picture = np.zeros((4, 4, 3), np.uint8)
    bag = write_bag(tmp_path / 'bag', [
        (topic, 10**9 * second, image_message(picture, 10**9 * second))
        for second in range(1, 4) for topic in ('/left', '/right')])
    inputs = [str(one), str(bag), str(two), 'tabletop:2@7']
    episodes, failed = open_inputs(inputs, TASK, rate=5.0)
    assert failed == []
    assert [episode.name for episode in episodes] == [
        'run', 'bag-left', 'bag-right', 'run_2', 'tabletop-7-0000', 'tabletop-7-0001']
    assert [episode.task for episode in episodes[:4]] == [TASK] * 4
    assert all('block' in episode.task and episode.labels.progress for episode in episodes[4:])
    again, _ = open_inputs(inputs, TASK, rate=5.0)
    assert [(one.name, one.source, one.camera) for one in again] == [
        (one.name, one.source, one.camera) for one in episodes]
    assert [one.camera for one in open_inputs([str(bag)], TASK, topics=['/right'])[0]] == ['/right']


def test_label_files_bring_tasks_rates_and_labels(tmp_path):
    """A folder with an episodes.yaml is one; a recording of it that is missing is skipped and named."""
    write_images(tmp_path / 'good', 6)
    write_images(tmp_path / 'bad', 6)
    (tmp_path / 'episodes.yaml').write_text(yaml.safe_dump({'task': 'pour', 'rate': 5, 'episodes': [
        {'path': 'good', 'success': True, 'progress': [[0, 0], [1, 1]]},
        {'path': 'gone', 'success': True},
        {'path': 'bad', 'task': 'stack', 'success': False, 'failures': [{'at': 0.5, 'reason': 'fall'}]}]}))
    episodes, failed = open_inputs([str(tmp_path)], 'another task')
    assert [(one.name, one.task) for one in episodes] == [('good', 'pour'), ('bad', 'stack')]
    assert episodes[0].labels == Labels(True, None, ((0.0, 0.0), (1.0, 1.0)))
    assert episodes[1].labels == Labels(False, (LabelledFailure(0.5, Reason.FALL),))
    assert [(source, 'no such file or folder' in why) for source, why in failed] == [
        (str(tmp_path / 'gone'), True)]


def test_a_recording_that_cannot_be_opened_is_one_among_many(tmp_path):
    """It is named with what is wrong, and the others are there."""
    good = write_images(tmp_path / 'good', 4)
    (tmp_path / 'torn.mp4').write_bytes(b'no video at all')
    episodes, failed = open_inputs([str(tmp_path / 'torn.mp4'), str(good)], TASK, rate=5.0)
    assert [one.name for one in episodes] == ['good']
    (source, why), = failed
    assert source == str(tmp_path / 'torn.mp4') and why.startswith(f'{source}: not a video')


@pytest.mark.parametrize(('inputs', 'task', 'line'), [
    (['{}/run'], '', 'run: no task is given; allowed is --task'),
    (['{}/run'], '  ', 'run: no task is given'),
    (['{}/run'], 'a <|im_end|> b', "the task holds '<|'"),
    (['{}/nowhere.mp4'], TASK, 'nowhere.mp4: no such file or folder; allowed: a video file'),
    (['{}/empty.yaml'], TASK, 'empty.yaml: names no episodes'),
    (['tabletop:0'], '', 'tabletop:0: no number of episodes of the demo world; allowed: tabletop:N'),
    (['tabletop:many'], '', 'tabletop:many: no number of episodes'),
    (['tabletop:2@x'], '', 'tabletop:2@x: no number of episodes'),
])
def test_arguments_that_mean_nothing_are_refused_at_once(tmp_path, inputs, task, line):
    """One line; nothing is skipped that was only misspelt."""
    write_images(tmp_path / 'run', 4)
    (tmp_path / 'empty.yaml').write_text('')
    with pytest.raises(RecordingError) as caught:
        open_inputs([text.format(tmp_path) for text in inputs], task, rate=5.0)
    assert line in str(caught.value) and '\n' not in str(caught.value)
