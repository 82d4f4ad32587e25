"""`densereward score` says of a recording what the node says of it, to the last digit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from densereward_ros import cli
from densereward_ros.models.base import ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.msg import RewardStamped
from densereward_ros.recordings.opening import open_recording
from densereward_ros.results.folder import read_results
from densereward_ros.results.rows import ScoredFrame
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.tabletop.episode import record
from densereward_ros.types import Reason
from recordings_made import write_video
from ros_bench import NS_PER_S, TASK, TOPIC, wait_for

pytestmark = pytest.mark.slow

START_NS = 1_700_000_000 * NS_PER_S  # a stamp of zero would be none
RELIABLE = {f'qos_overrides.{TOPIC}.subscription.reliability': 'reliable'}


@pytest.fixture
def watched(start_node, client, tmp_path):
    """Scores a video, and plays it before the node: each frame with its stamp, once the last one is done.

    Returns both, by stamp.
    """
    def watch(video: Path) -> tuple[dict[int, ScoredFrame], dict[int, RewardStamped]]:
        assert cli.main([
            'score', str(video), '--task', TASK, '--model', 'tabletop', '--device', 'cpu', '-o',
            str(tmp_path / 'out')]) == 0
        scored = {frame.stamp_ns: frame for frame in read_results(tmp_path / 'out').episodes[0].frames}
        model = open_model(ModelOptions(model='tabletop', device='cpu'))
        # Waiting for each verdict on a busy machine may take longer than a camera's frames live.
        here = start_node(
            lambda *_: model, frame_interval=0.2, max_frame_age=30.0, task=TASK, device='cpu', **RELIABLE)
        assert client.transition('configure') and client.transition('activate')
        camera = here.camera(client)
        rewards = client.listen(RewardStamped, '/reward', 1000)
        told = 0
        for seconds, image in open_recording(video).frames():
            camera.send(START_NS + round(seconds * NS_PER_S), image)
            if round(seconds * NS_PER_S) in scored:
                told += 1
                wait_for(lambda told=told: len(rewards) >= told, 30, f'the verdict at {seconds} s')
        return scored, {stamp_ns(reward.header.stamp) - START_NS: reward for reward in rewards}

    return watch


def agree(scored: dict[int, ScoredFrame], rewards: dict[int, RewardStamped]) -> None:
    """Every window of the one is one of the other, with the same verdict."""
    assert scored.keys() == rewards.keys()
    for stamp, frame in scored.items():
        reward = rewards[stamp]
        assert np.float32(frame.reward) == np.float32(reward.reward)
        assert frame.reason == reward.reason
        # The node reads ahead and scores one by one: of the probabilities the last bits may differ.
        assert reward.reason_probabilities == pytest.approx(frame.reason_probabilities, abs=1e-5)


def test_a_clip_of_the_demo_world(watched, tmp_path):
    """With a failure in it, so that words and rewards are of many kinds."""
    episode = record([77, 1], (Reason.FALL,))
    pictures = [episode.picture(tick) for tick in range(len(episode.views))][:60]
    scored, rewards = watched(write_video(tmp_path / 'clip.mp4', pictures, 10))
    assert len(scored) == 28
    assert len({frame.reward for frame in scored.values()}) > 10
    agree(scored, rewards)


def test_a_real_video(watched, video_folder):
    """Whatever the demo checkpoint makes of it."""
    scored, rewards = watched(video_folder / 'berkeley_rpt_stack_cup.mp4')
    assert len(scored) > 10
    agree(scored, rewards)
