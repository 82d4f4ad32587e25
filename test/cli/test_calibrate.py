"""`densereward calibrate`, from recordings on disk to a thresholds file that the node can load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from densereward_ros import cli
from densereward_ros.events.thresholds import read
from densereward_ros.tabletop.episode import record
from densereward_ros.types import REASONS, Reason, Verdict

MISSED = 77  # grey level of a picture that the stand-in model calls a miss


class GreyModel:
    """Says `miss` of pictures of one grey, as surely as their folder's name says, `correct` of others."""

    name = 'grey'
    probability = 0.5
    closed = False

    def score(self, windows):
        """The grey level is the reward."""
        verdicts = []
        for window in windows:
            grey = int(window.newest.image[0, 0, 0])
            reason = Reason.MISS if grey == MISSED else Reason.CORRECT
            sure = float(window.camera.partition('-')[2] or 90) / 100
            verdicts.append(Verdict(grey / 255, reason, True, tuple(
                sure if other is reason else (1 - sure) / 5 for other in REASONS)))
        return verdicts

    def close(self):
        """Nothing to free."""
        GreyModel.closed = True


def save(folder: Path, greys: list[int]) -> str:
    """A folder of pictures, one for each grey level; returns its name."""
    folder.mkdir(parents=True)
    for number, grey in enumerate(greys):
        Image.fromarray(np.full((8, 8, 3), grey, np.uint8)).save(folder / f'{number:03}.png')
    return folder.name


@pytest.fixture
def recordings(tmp_path, monkeypatch):
    """20 successful recordings, of which two hold words of failure (0.4 and 0.7 sure), and three failures."""
    monkeypatch.setattr('densereward_ros.models.opening.open_model', lambda *_: GreyModel())
    good = [100 + 5 * i for i in range(12)]
    wrong = [100, 110, 120, MISSED, MISSED, 130, 140]
    episodes = [{'path': save(tmp_path / f'good_{i}', good), 'success': True} for i in range(18)]
    episodes += [{'path': save(tmp_path / f'good-{sure}', wrong), 'success': True} for sure in (40, 70)]
    late = [100] * 6 + [MISSED] * 6
    episodes += [
        {'path': save(tmp_path / 'bad_1-90', late), 'success': False, 'failed_at': 1.2},
        {'path': save(tmp_path / 'bad_2-60', late), 'success': False, 'failed_at': 1.2},
        {'path': save(tmp_path / 'bad_3-90', late), 'success': False}]
    (tmp_path / 'episodes.yaml').write_text(yaml.safe_dump(
        {'task': 'stack the cup', 'rate': 5, 'episodes': episodes}))
    return tmp_path


def test_thresholds_for_a_rate_from_recordings(recordings, capsys):
    """At 0.1, 20 episodes may have one alarm: the floor is just above the second highest score."""
    output = recordings / 'thresholds.yaml'
    assert cli.main(['calibrate', str(recordings), '--false-alarms', '0.1', '-o', str(output)]) == 0
    found = read(output)
    assert found.settings.probability_floors == (0.4001,) * 5
    assert (found.settings.confirmations, found.settings.confirmation_window) == (2, 3)
    assert (found.false_alarms, found.episodes, found.model, found.engine) == (0.1, 20, 'grey', 'fast')
    said = capsys.readouterr().out
    assert '20 successful episodes: at most 0.1 of those to come have an event' in said
    assert '2 of the last 3 verdicts name the same failure' in said
    assert 'each with a probability of at least 0.4001' in said
    assert 'failures: 3 of 3 have an event; median delay of those found 0.20 s' in said
    with Image.open(output.with_suffix('.png')) as picture:
        assert picture.format == 'PNG' and picture.width > 500
    assert GreyModel.closed


def test_a_lower_rate_asks_for_surer_words_and_misses_more(recordings, capsys):
    """At 0.05 no alarm is left: the floor is above 0.7, and the failure that is 0.6 sure is missed."""
    output = recordings / 'thresholds.yaml'
    assert cli.main(['calibrate', str(recordings), '--false-alarms', '0.05', '-o', str(output)]) == 0
    assert read(output).settings.probability_floors[0] == 0.7001
    said = capsys.readouterr().out
    assert 'failures: 2 of 3 have an event' in said
    # 0.2 s for the one that was found, and for the other the second that was left.
    assert 'the rest of its episode 0.60 s' in said


@pytest.mark.parametrize(('arguments', 'line'), [
    (['--false-alarms', '0.01'], '20 successful episodes cannot promise an event in at most 0.01 of '
     'episodes: that needs at least 99; these promise 0.048 at best'),
    (['--rules', 'words', 'drop'], '20 successful episodes cannot promise an event in at most 0.05 of '
     'episodes, shared by 2 rules: that needs at least 39; these promise 0.096 at best'),
    (['--false-alarms', '2'], 'false alarms are 2.0, allowed: a rate above 0 and below 1'),
    (['--confirmations', '5'],
     'confirmation_window is 3, allowed: 0, or at least confirmations, which is 5'),
])
def test_what_cannot_be_promised_is_said_before_anything_is_scored(
        recordings, monkeypatch, capsys, arguments, line):
    """Exit code 1 and one line; no model is opened, and nothing is written."""
    monkeypatch.setattr(
        'densereward_ros.models.opening.open_model', lambda *_: pytest.fail('opened a model'))
    output = recordings / 'thresholds.yaml'
    assert cli.main(['calibrate', str(recordings), '-o', str(output), *arguments]) == 1
    assert capsys.readouterr().err == f'densereward: {line}\n'
    assert not output.exists()


def test_a_recording_that_is_too_short_is_named(recordings, capsys):
    """Two frames give no verdict."""
    save(recordings / 'short', [1, 2])
    labels = yaml.safe_load((recordings / 'episodes.yaml').read_text())
    labels['episodes'].append({'path': 'short', 'success': True})
    (recordings / 'episodes.yaml').write_text(yaml.safe_dump(labels))
    assert cli.main(['calibrate', str(recordings)]) == 1
    assert f'{recordings / "short"}: too short for a verdict' in capsys.readouterr().err


def test_only_a_success_without_failures_is_clean(recordings, capsys):
    """One that recovered counts as a failure; one that nobody judged is refused by name."""
    labels = yaml.safe_load((recordings / 'episodes.yaml').read_text())
    labels['episodes'][18]['failures'] = [{'at': 0.6, 'reason': 'miss'}]
    (recordings / 'episodes.yaml').write_text(yaml.safe_dump(labels))
    output = recordings / 'thresholds.yaml'
    assert cli.main(['calibrate', str(recordings), '--false-alarms', '0.1', '-o', str(output)]) == 0
    assert read(output).episodes == 19
    assert 'failures: 4 of 4 have an event' in capsys.readouterr().out
    del labels['episodes'][0]['success']
    (recordings / 'episodes.yaml').write_text(yaml.safe_dump(labels))
    assert cli.main(['calibrate', str(recordings)]) == 1
    assert capsys.readouterr().err == (
        f'densereward: {recordings / "good_0"}: success is not given; calibrating needs true or false\n')


@pytest.mark.slow
def test_the_demo_checkpoint_on_pictures_of_its_own_world(tmp_path):
    """The whole way with a real model: one successful episode promises 0.5, and drops may share the rate."""
    episodes = []
    for name, mishaps in (('good', ()), ('also_good', ()), ('more_good', ()), ('bad', (Reason.MISS,))):
        episode = record([77, len(episodes)], mishaps)
        (tmp_path / name).mkdir()
        for tick in range(0, len(episode.views), 2):
            Image.fromarray(episode.picture(tick)).save(tmp_path / name / f'{tick:03}.png')
        episodes.append({'path': name, 'task': episode.task, 'success': not mishaps})
    (tmp_path / 'labels.yaml').write_text(yaml.safe_dump({'rate': 5.0, 'episodes': episodes}))
    output = tmp_path / 't.yaml'
    assert cli.main([
        'calibrate', str(tmp_path / 'labels.yaml'), '--model', 'tabletop', '--device', 'cpu',
        '--false-alarms', '0.5', '--rules', 'words', 'drop', '-o', str(output)]) == 0
    found = read(output)
    assert (found.model, found.episodes) == ('tabletop', 3)
    assert 0.0 < found.settings.reward_drop < 1.0


def test_an_output_that_cannot_be_written_is_said_before_anything_is_scored(recordings, monkeypatch, capsys):
    """Not after an hour of it."""
    monkeypatch.setattr(GreyModel, 'score', lambda *_: pytest.fail('scored'))
    (recordings / 'file').write_text('')
    assert cli.main(['calibrate', str(recordings), '-o', str(recordings / 'file' / 't.yaml')]) == 1
    error = capsys.readouterr().err
    assert 'cannot be written' in error and error.count('\n') == 1


class ScoreModel(GreyModel):
    """A score head: a tenth of the grey level less 20, without words."""

    bounded = False

    def score(self, windows):
        """Between -12.3 and -4.5."""
        return [Verdict(int(w.newest.image[0, 0, 0]) / 10 - 20, Reason.NONE, bounded=False) for w in windows]


def test_scores_without_words_are_calibrated_by_their_drop(recordings, monkeypatch, capsys):
    """Two of 20 successful episodes fall by 4.3, and one may alarm: a drop just above that, beyond [0, 1]."""
    monkeypatch.setattr('densereward_ros.models.opening.open_model', lambda *_: ScoreModel())
    output = recordings / 'thresholds.yaml'
    asked = ['calibrate', str(recordings), '--engine', 'score_head', '-o', str(output)]
    assert cli.main([*asked, '--false-alarms', '0.1']) == 0
    found = read(output)
    assert (found.engine, found.settings.reward_drop) == ('score_head', pytest.approx(4.3001, abs=1e-4))
    assert found.settings.reward_drop > 4.3
    assert 'drop: the reward falls by 4.3001 or more within 2 s' in capsys.readouterr().out
    assert cli.main([*asked, '--false-alarms', '0.15']) == 0
    assert read(output).settings.reward_drop == 0.0001
    assert 'failures: 3 of 3 have an event' in capsys.readouterr().out
