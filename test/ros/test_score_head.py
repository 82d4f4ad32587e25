"""The node with a score head: unbounded rewards without a reason, and events by the drop of the reward."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import CompressedImage

from densereward_ros.models.opening import open_model
from densereward_ros.msg import EpisodeState, FailureEvent, RewardStamped
from densereward_ros.ros.publications import LATCHED_QOS
from densereward_ros.types import Frame, Window
from planted import plant_scores
from ros_bench import NS_PER_S, TASK, TOPIC, wait_for

# Of three frames each, oldest first: W for white, B for black.
SCORES = {'WWW': 12.5, 'WWB': 11.0, 'WBB': -4.25, 'BBB': -5.5}
PICTURES = {'W': np.full((96, 128, 3), 230, np.uint8), 'B': np.full((96, 128, 3), 20, np.uint8)}


@pytest.fixture(scope='module')
def checkpoint(random_checkpoint, tmp_path_factory) -> Path:
    """A head that gives SCORES."""
    frames = {
        colours: tuple(Frame(i, i, lambda c=colour: PICTURES[c]) for i, colour in enumerate(colours))
        for colours in SCORES}
    windows = [Window(TOPIC, TASK, three) for three in frames.values()]
    folder = tmp_path_factory.mktemp('checkpoints') / 'planted'
    return plant_scores(random_checkpoint, folder, windows, list(SCORES.values()))


def test_scores_are_published_and_a_drop_is_an_event(start_node, client, checkpoint, log):
    """Over DDS with the real model: rewards as planted, and one event where they fall by reward_drop."""
    here = start_node(
        open_model, model=str(checkpoint), engine='score_head', device='cpu', reward_drop=10.0,
        drop_window=5.0)
    assert client.transition('configure')
    assert client.transition('activate')
    camera = here.camera(client)
    rewards = client.listen(RewardStamped, '/reward')
    events = client.listen(FailureEvent, '/failure_event')
    named = client.listen(FailureEvent, '/failure_event/failure')
    states = client.listen(EpisodeState, '/reward_node/episode_state', LATCHED_QOS)
    pictures = client.listen(CompressedImage, '/reward_node/debug_image/compressed')
    for number, colour in enumerate('WWWBBB'):
        camera.send(100 * NS_PER_S + number * NS_PER_S // 5, PICTURES[colour])
        wait_for(lambda number=number: len(rewards) == max(0, number - 1))
    assert [reward.reward for reward in rewards] == pytest.approx(list(SCORES.values()), abs=0.01)
    for reward in rewards:
        assert (reward.bounded, reward.reason) == (False, RewardStamped.REASON_NONE)
        assert len(reward.reason_probabilities) == 6
        assert all(math.isnan(probability) for probability in reward.reason_probabilities)
        assert (reward.model, reward.task) == (str(checkpoint), TASK)
    wait_for(lambda: events and named and pictures)
    event, = events
    assert (event.rule, event.reason) == (FailureEvent.RULE_REWARD_DROP, FailureEvent.REASON_FAILURE)
    assert event.reward == pytest.approx(-4.25, abs=0.01)
    assert event.previous_reward == pytest.approx(12.5, abs=0.01)
    assert math.isnan(event.probability)
    assert event.header.stamp == rewards[2].header.stamp
    wait_for(lambda: states[-1].state == EpisodeState.STATE_FAILING)
    assert {state.state for state in states} <= {
        EpisodeState.STATE_UNKNOWN, EpisodeState.STATE_RUNNING, EpisodeState.STATE_FAILING}
    assert log('WARN') == [f'failure: failure on {TOPIC}, reward {event.reward:.3f}']
    assert here.errors == []


def test_without_a_drop_the_node_says_that_there_will_be_no_events(start_node, client, checkpoint, log):
    """Once, at configure."""
    start_node(open_model, model=str(checkpoint), engine='score_head', device='cpu')
    assert client.transition('configure')
    assert log('WARN') == [
        f'{checkpoint} scores without words, and reward_drop is 0.0: there are no failure events until it is '
        'set, or thresholds of densereward calibrate are']


def test_a_checkpoint_without_a_head_leaves_the_node_unconfigured(start_node, client, random_checkpoint, log):
    """With the line that says what it lacks."""
    start_node(open_model, model=str(random_checkpoint), engine='score_head', device='cpu')
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    assert any("has no score.weight, which engine 'score_head' needs" in line for line in log('ERROR'))
