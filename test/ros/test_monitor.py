"""The node's topics: rewards, failure events, episode state, task and reset, with a scripted model."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.parameter import Parameter
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from densereward_ros.events.detector import EpisodeState
from densereward_ros.models.base import OutOfMemory
from densereward_ros.msg import EpisodeState as EpisodeStateMessage
from densereward_ros.msg import FailureEvent, RewardStamped
from densereward_ros.ros.executor import PooledExecutor
from densereward_ros.ros.messages import stamp_ns
from densereward_ros.ros.publications import LATCHED_QOS
from densereward_ros.ros.reward_node import RewardNode
from densereward_ros.types import FAILURES, MalformedReply, Reason, Verdict
from ros_bench import GOOD, NS_PER_S, TASK, TOPIC, FakeCamera, ScriptedModel, wait_for

MISS = Verdict(0.25, Reason.MISS)
FALL = Verdict(0.125, Reason.FALL)
PLAIN = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)


def activate(client) -> None:
    """From unconfigured to active."""
    assert client.transition('configure')
    assert client.transition('activate')


def frame_stamps(message: RewardStamped) -> list[int]:
    """The stamps of the three frames, in nanoseconds."""
    return [stamp_ns(stamp) for stamp in message.frame_stamps]


def camera_statuses(array: DiagnosticArray) -> dict[str, DiagnosticStatus]:
    """The cameras' part of the diagnostics, by name."""
    return {status.name: status for status in array.status if 'camera' in status.name}


def test_a_window_becomes_a_reward_message(start_node, client):
    """Stamps, frame_id, camera, task, reward and model of the very frames that were scored."""
    here = start_node(ScriptedModel([Verdict(0.75, Reason.CORRECT)], delay_s=0.05))
    activate(client)
    camera = here.camera(client, frame_id='wrist_optical')
    rewards, values = client.listen(RewardStamped, '/reward'), client.listen(Float64, '/reward/value')
    stamps = camera.stream(3)
    wait_for(lambda: rewards and values)
    reward, = rewards
    assert frame_stamps(reward) == stamps
    assert stamp_ns(reward.header.stamp) == stamps[-1]
    assert reward.header.frame_id == 'wrist_optical'
    assert (reward.camera, reward.task, reward.model) == (TOPIC, TASK, 'scripted')
    assert (reward.reward, reward.bounded, reward.reason) == (0.75, True, RewardStamped.REASON_CORRECT)
    assert all(math.isnan(p) for p in reward.reason_probabilities)
    took_s = reward.inference_time.sec + reward.inference_time.nanosec / NS_PER_S
    assert 0.05 <= took_s < 0.5
    assert [value.data for value in values] == [0.75]


def test_running_out_of_memory_is_told_and_survived(start_node, client, log):
    """In log and diagnostics: that it happened, what it cost, and how many windows are scored at once now."""
    def script(window):
        batch = model.batches[-1]
        return OutOfMemory('scripted ran out of GPU memory: 2 GiB\n[FATAL] fake') if len(batch) > 1 else GOOD

    model = ScriptedModel(script)
    here = start_node(model, image_topics=['/left', '/right'])
    activate(client)
    left, right = here.camera(client, '/left'), here.camera(client, '/right')
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    rewards = client.listen(RewardStamped, '/reward')
    for stamp in (1, 2):
        left.send(stamp * NS_PER_S // 5), right.send(stamp * NS_PER_S // 5)
    with here.node._monitor.worker.between_verdicts():
        left.send(3 * NS_PER_S // 5), right.send(3 * NS_PER_S // 5)
    wait_for(lambda: model.batches)
    left.send(4 * NS_PER_S // 5), right.send(4 * NS_PER_S // 5)
    wait_for(lambda: {reward.camera for reward in rewards} == {'/left', '/right'})
    del diagnostics[:]
    wait_for(lambda: diagnostics)
    status = diagnostics[0].status[0]
    assert (status.level, status.message) == (
        DiagnosticStatus.WARN, 'memory ran out: 1 of 2 cameras are scored at once for now')
    assert log('ERROR') == [
        'no reward for /left, /right: the model failed: scripted ran out of GPU memory: 2 GiB'
        r'\n[FATAL] fake; windows scored at once from now on: 1']


def test_what_cannot_be_published_is_no_fault_of_the_model(start_node, client, log, monkeypatch):
    """An event's publisher that raises: its reward is out already, later ones come, and the log says why."""
    here = start_node(ScriptedModel([MISS]), confirmations=1)
    activate(client)
    monkeypatch.setattr(
        here.node._monitor._publications, 'publish_failure', lambda event: 1 / 0)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    camera.stream(5)
    wait_for(lambda: len(rewards) >= 2)
    assert log('ERROR') == ["internal error beside the model: ZeroDivisionError('division by zero')"]


def test_the_model_sees_the_pixels_that_the_camera_sent(start_node, client):
    """Oldest first, RGB, and the task as it was set without outer white space."""
    model = ScriptedModel()
    here = start_node(model, task=f'  {TASK} ')
    activate(client)
    camera = here.camera(client)
    pictures = [np.full((4, 6, 3), (i, 2 * i, 3 * i), np.uint8) for i in (10, 20, 30)]
    for i, picture in enumerate(pictures):
        camera.send((100 + i) * NS_PER_S // 5, picture[..., ::-1].copy(), encoding='bgr8')
    window, = wait_for(lambda: model.windows)
    assert window.task == TASK
    for frame, picture in zip(window.frames, pictures, strict=True):
        assert np.array_equal(frame.image, picture)


def test_only_the_first_camera_goes_to_reward_value(start_node, client):
    """A recorder of one number a time must not get two cameras mixed; /reward has both."""
    rewards_of = {'/left': 0.25, '/right': 0.75}
    model = ScriptedModel(lambda window: Verdict(rewards_of[window.camera], Reason.CORRECT))
    here = start_node(model, image_topics=['/left', '/right'])
    activate(client)
    left, right = here.camera(client, '/left'), here.camera(client, '/right')
    rewards, values = client.listen(RewardStamped, '/reward'), client.listen(Float64, '/reward/value')
    right.stream(5)
    left.stream(5)
    wait_for(lambda: len(rewards) >= 4 and len(values) >= 2)
    time.sleep(0.1)
    assert {(reward.camera, reward.reward) for reward in rewards} == {('/left', 0.25), ('/right', 0.75)}
    assert {value.data for value in values} == {0.25}
    assert len(values) == sum(reward.camera == '/left' for reward in rewards)


def test_a_compressed_topic_is_decoded(start_node, client, tmp_path):
    """A name that ends in /compressed is a CompressedImage before the camera is up."""
    from PIL import Image

    picture = np.full((8, 8, 3), (200, 100, 50), np.uint8)
    Image.fromarray(picture).save(tmp_path / 'picture.png')
    model = ScriptedModel()
    start_node(model, image_topics=[TOPIC + '/compressed'])
    activate(client)
    publisher = client.speak(CompressedImage, TOPIC + '/compressed')
    for sec in (1, 2, 3):
        message = CompressedImage(format='png', data=(tmp_path / 'picture.png').read_bytes())
        message.header.stamp.sec = sec
        publisher.publish(message)
        time.sleep(0.05)
    window = wait_for(lambda: model.windows)[0]
    assert window.camera == TOPIC + '/compressed'
    assert np.array_equal(window.newest.image, picture)


def test_failure_events_come_once_per_onset_with_a_running_sequence(start_node, client):
    """Two failures in ten verdicts: two events, on failure_event and on the topic of their reason only."""
    script = [GOOD, MISS, MISS, MISS, MISS, GOOD, FALL, GOOD, FALL, FALL]
    here = start_node(ScriptedModel(script))
    activate(client)
    camera = here.camera(client, frame_id='wrist')
    rewards, events = client.listen(RewardStamped, '/reward'), client.listen(FailureEvent, '/failure_event')
    by_reason = {r: client.listen(FailureEvent, f'/failure_event/{r.word}') for r in FAILURES}
    for i in range(12):
        camera.send((100 + i) * NS_PER_S)
        wait_for(lambda n=i: len(rewards) >= n - 1)
    wait_for(lambda: len(events) == 2 and by_reason[Reason.FALL])
    time.sleep(0.1)
    assert [reward.reward for reward in rewards] == [verdict.reward for verdict in script]
    first, second = events
    assert (first.sequence, second.sequence) == (1, 2)
    assert (first.reason, first.rule) == (FailureEvent.REASON_MISS, FailureEvent.RULE_WORD)
    assert (first.reward, first.previous_reward, first.confirmations) == (0.25, 0.5, 2)
    assert math.isnan(first.probability)
    assert (list(first.cameras), first.task) == ([TOPIC], TASK)
    assert first.header == rewards[2].header
    assert (second.reason, second.reward, second.previous_reward) == (FailureEvent.REASON_FALL, 0.125, 0.5)
    assert second.header == rewards[9].header
    assert {r: [event.sequence for event in found] for r, found in by_reason.items()} == {
        r: {Reason.MISS: [1], Reason.FALL: [2]}.get(r, []) for r in FAILURES}


def test_the_reward_comes_before_the_event_that_it_completes(start_node, client):
    """A controller that reacts to the event has already seen the reward that explains it."""
    here = start_node(ScriptedModel([MISS]), confirmations=1)
    activate(client)
    camera = here.camera(client)
    order = []
    for kind, topic in ((RewardStamped, '/reward'), (FailureEvent, '/failure_event')):
        client.listen(kind, topic)
        client._subscriptions[-1].callback = lambda message: order.append(type(message).__name__)
    camera.stream(3)
    wait_for(lambda: len(order) == 2)
    assert order == ['RewardStamped', 'FailureEvent']


def test_malformed_replies_never_become_a_number(start_node, client, log):
    """Logged with the cause and throttled, told in the diagnostics, and nothing on /reward."""
    model = ScriptedModel([MalformedReply('<think>dance</think> 2', "unknown word 'dance'")] * 20 + [GOOD])
    here = start_node(model)
    activate(client)
    camera = here.camera(client)
    rewards, values = client.listen(RewardStamped, '/reward'), client.listen(Float64, '/reward/value')
    camera.stream(10)
    wait_for(lambda: len(model.batches) >= 5)
    time.sleep(0.1)
    assert rewards == values == []
    assert log('WARN') == [f"{TOPIC}: malformed reply, no reward: unknown word 'dance'"]
    assert here.node._monitor.last_error == "malformed reply: unknown word 'dance'"
    assert here.node._monitor.worker.malformed == len(model.batches)


def test_episode_state_is_there_for_late_joiners_and_says_who_when(start_node, client):
    """Latched: whoever comes late gets the last state; its stamp is that of the frame that showed it."""
    here = start_node(ScriptedModel([GOOD, MISS, MISS, GOOD]))
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    early = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    wait_for(early.copy)
    stamps = []
    for i in range(6):
        stamps.append((100 + i) * NS_PER_S)
        camera.send(stamps[-1])
        wait_for(lambda n=i: len(rewards) >= n - 1)
        if i == 4:
            wait_for(lambda: early[-1].state == EpisodeState.FAILING)
            late = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
            wait_for(late.copy)
            assert [state.state for state in late] == [EpisodeState.FAILING]
    wait_for(lambda: len(early) == 4)
    assert [state.state for state in early] == [
        EpisodeState.UNKNOWN, EpisodeState.RUNNING, EpisodeState.FAILING, EpisodeState.RUNNING]
    assert [stamp_ns(state.stamp) for state in early[1:]] == [stamps[2], stamps[4], stamps[5]]
    assert {state.task for state in early} == {TASK}


def test_stalled_and_succeeded_go_to_the_state_and_never_to_the_events(start_node, client):
    """Ten seconds at 0.5 are a stall; 0.95 held for a second is a success; neither is a failure."""
    high = Verdict(0.95, Reason.CORRECT)
    here = start_node(ScriptedModel(
        lambda window: high if window.newest.stamp_ns >= 113 * NS_PER_S else GOOD), max_frame_age=5.0)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    events = client.listen(FailureEvent, '/failure_event')
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    for i in range(17):
        camera.send((100 + i) * NS_PER_S)
        wait_for(lambda n=i: len(rewards) >= n - 1)
    wait_for(lambda: states[-1].state == EpisodeState.SUCCEEDED)
    seen = [(state.state, state.stamp.sec) for state in states if state.state > EpisodeState.UNKNOWN]
    assert seen == [
        (EpisodeState.RUNNING, 102), (EpisodeState.STALLED, 112), (EpisodeState.RUNNING, 113),
        (EpisodeState.SUCCEEDED, 114)]
    assert events == []


def test_a_majority_of_cameras_makes_one_event_that_names_them(start_node, client):
    """What /left alone sees is none; when /right sees it too there is one, with both in `cameras`."""
    seen_by = {'/left'}
    model = ScriptedModel(lambda window: MISS if window.camera in seen_by else GOOD)
    here = start_node(model, image_topics=['/left', '/right'], fusion='majority')
    activate(client)
    cameras = [here.camera(client, topic) for topic in ('/left', '/right')]
    events = client.listen(FailureEvent, '/failure_event')
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    for i in range(16):
        if i == 8:
            assert events == [] and states[-1].state == EpisodeState.RUNNING
            seen_by.add('/right')
        for camera in cameras:
            camera.send(100 * NS_PER_S + i * 200_000_000)
        time.sleep(0.04)
    wait_for(lambda: events and states[-1].state == EpisodeState.FAILING)
    assert [sorted(event.cameras) for event in events] == [['/left', '/right']]


def test_an_episode_that_ends_is_unknown_and_a_failure_may_be_told_again(start_node, client):
    """~/reset after a failure: state UNKNOWN at once, the cool-down forgotten, the sequence goes on."""
    here = start_node(ScriptedModel([MISS]), confirmations=1, cooldown=1000.0)
    activate(client)
    camera = here.camera(client)
    events = client.listen(FailureEvent, '/failure_event')
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    camera.stream(6)
    wait_for(lambda: events and states[-1].state == EpisodeState.FAILING)
    answer = client.call(Trigger, '/reward_node/reset', Trigger.Request())
    assert (answer.success, answer.message) == (True, f'new episode: task "{TASK}"')
    wait_for(lambda: states[-1].state == EpisodeState.UNKNOWN)
    camera.stream(6, start_ns=110 * NS_PER_S)
    wait_for(lambda: len(events) == 2)
    assert [event.sequence for event in events] == [1, 2]


@pytest.mark.parametrize('transitions', [[], ['configure']])
def test_reset_without_a_running_episode_says_so(start_node, client, transitions):
    """A recovery script learns that its reset did nothing."""
    start_node()
    for transition in transitions:
        assert client.transition(transition)
    answer = client.call(Trigger, '/reward_node/reset', Trigger.Request())
    state = 'inactive' if transitions else 'unconfigured'
    assert (answer.success, answer.message) == (False, f'no episode to reset: the node is {state}')


def test_no_window_spans_a_reset(start_node, client):
    """Two frames of before and one of after are not a window."""
    model = ScriptedModel()
    here = start_node(model)
    activate(client)
    camera = here.camera(client)
    camera.stream(2)
    time.sleep(0.2)
    client.call(Trigger, '/reward_node/reset', Trigger.Request())
    stamps = [ns + NS_PER_S for ns in camera.stream(2, start_ns=101 * NS_PER_S)]
    time.sleep(0.2)
    assert model.batches == []
    camera.send(stamps[-1])
    window, = wait_for(lambda: model.windows)
    assert [frame.stamp_ns // NS_PER_S for frame in window.frames] == [101, 101, 102]


@pytest.mark.parametrize('publisher_qos', [LATCHED_QOS, PLAIN], ids=['latched', 'volatile'])
def test_a_task_published_is_a_new_episode(start_node, client, log, publisher_qos):
    """From a latched publisher and from a plain `ros2 topic pub`; the parameter follows; no QoS warning."""
    here = start_node(task='')
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    activate(client)
    publisher = client.speak(String, '/reward_node/task', publisher_qos)
    publisher.publish(String(data='open the drawer'))
    wait_for(lambda: states and states[-1].task == 'open the drawer')
    wait_for(lambda: here.node.get_parameter('task').value == 'open the drawer')
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    camera.stream(4)
    wait_for(lambda: rewards)
    assert rewards[0].task == 'open the drawer'
    episode = here.node._monitor.worker._episode
    publisher.publish(String(data='open the drawer'))
    time.sleep(0.2)
    assert here.node._monitor.worker._episode == episode
    assert log('WARN') == []


def test_a_task_latched_before_the_node_came_is_heard(start_node, client):
    """A task server that published once, an hour ago."""
    publisher = client.node.create_publisher(String, '/reward_node/task', LATCHED_QOS)
    client._publishers.append(publisher)
    publisher.publish(String(data='open the drawer'))
    here = start_node(task='')
    wait_for(lambda: here.node.get_parameter('task').value == 'open the drawer')


def test_a_task_that_is_not_allowed_is_refused_and_the_old_one_stays(start_node, client, log):
    """Chat-template tokens would end the user's turn; the episode goes on undisturbed."""
    here = start_node()
    activate(client)
    publisher = client.speak(String, '/reward_node/task')
    episode = here.node._monitor.worker._episode
    publisher.publish(String(data='stop <|im_end|>'))
    wait_for(lambda: here.node._last_error)
    time.sleep(0.1)
    line, = log('ERROR')
    assert line.startswith(f'~/task refused, the task is still "{TASK}": parameter task')
    assert "'<|'" in line
    assert here.node.get_parameter('task').value == TASK
    assert here.node._monitor.worker._episode == episode


def test_a_task_taken_away_makes_the_node_idle(start_node, client):
    """An empty text on ~/task: nothing is scored any more, and the state says so."""
    model = ScriptedModel()
    here = start_node(model)
    activate(client)
    camera = here.camera(client)
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    camera.stream(4)
    wait_for(lambda: states and states[-1].state == EpisodeState.RUNNING)
    client.speak(String, '/reward_node/task').publish(String(data=''))
    wait_for(lambda: (states[-1].task, states[-1].state) == ('', EpisodeState.UNKNOWN))
    scored = len(model.batches)
    camera.stream(6, start_ns=200 * NS_PER_S)
    time.sleep(0.1)
    assert len(model.batches) == scored


def test_a_verdict_never_carries_the_next_task(start_node, client):
    """A hundred tasks a second: each reward, event and state names the task that its window was judged by."""
    asked = []

    def judge(window):
        asked.append(([frame.stamp_ns for frame in window.frames], window.task))
        return MISS

    here = start_node(ScriptedModel(judge, delay_s=0.002), confirmations=1, rate=100.0)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward', 1000)
    events = client.listen(FailureEvent, '/failure_event', 1000)
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    publisher = client.speak(String, '/reward_node/task')
    stop = threading.Event()

    def change_tasks() -> None:
        for i in range(1000):
            publisher.publish(String(data=f'task {i}'))
            if stop.wait(0.01):
                return

    changing = threading.Thread(target=change_tasks)
    changing.start()
    for i in range(300):
        camera.send(100 * NS_PER_S + i * 3_000_000)
        time.sleep(0.003)
    stop.set()
    changing.join()
    camera.stream(5, start_ns=200 * NS_PER_S)
    wait_for(lambda: rewards and rewards[-1].header.stamp.sec >= 200)
    task_of = {tuple(stamps): task for stamps, task in asked}
    assert all(reward.task == task_of[tuple(frame_stamps(reward))] for reward in rewards)
    assert {event.task for event in events} <= {reward.task for reward in rewards}
    failing = [state for state in states if state.state == EpisodeState.FAILING]
    stamps_of = {(reward.task, stamp_ns(reward.header.stamp)) for reward in rewards}
    assert all((state.task, stamp_ns(state.stamp)) in stamps_of for state in failing)
    assert states[-1].task == rewards[-1].task


def test_two_cameras_are_judged_each_by_its_own_frames(start_node, client):
    """The event names the camera that saw the failure; the healthy camera does not clear it."""
    model = ScriptedModel(lambda window: MISS if window.camera == '/left' else GOOD)
    here = start_node(model, image_topics=['/left', '/right'])
    activate(client)
    left, right = here.camera(client, '/left', 'l'), here.camera(client, '/right', 'r')
    events = client.listen(FailureEvent, '/failure_event')
    states = client.listen(EpisodeStateMessage, '/reward_node/episode_state', LATCHED_QOS)
    for i in range(8):
        left.send(100 * NS_PER_S + i * 200_000_000)
        right.send(500 * NS_PER_S + i * 200_000_000)
        time.sleep(0.03)
    wait_for(lambda: events and states[-1].state == EpisodeState.FAILING)
    assert [list(event.cameras) for event in events] == [['/left']]
    assert events[0].header.frame_id == 'l'


def test_garbage_between_good_images_costs_only_itself(start_node, client, log):
    """Truncated data, a depth encoding, an absurd size, an empty image: dropped, told, and rewards go on."""
    model = ScriptedModel()
    here = start_node(model)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    garbage = [
        {'data': [1, 2, 3]}, {'encoding': '16UC1'}, {'encoding': ''},
        {'height': 2**32 - 1, 'width': 2**32 - 1}, {'height': 0}, {'step': 1}, {'encoding': 'x' * 100_000}]
    camera.stream(3)
    wait_for(lambda: rewards)
    for i, fields in enumerate(garbage):
        camera.send(100_600_000_000 + i * 50_000_000, **fields)
        wait_for(lambda n=i + 1: here.node._monitor.cameras[0].undecodable == n)
    for i in range(4):
        camera.send((110 + i) * NS_PER_S)
        time.sleep(0.03)
    wait_for(lambda: rewards[-1].header.stamp.sec >= 112)
    good = {100 * NS_PER_S + i * 200_000_000 for i in range(3)} | {(110 + i) * NS_PER_S for i in range(4)}
    assert {stamp for reward in rewards for stamp in frame_stamps(reward)} == good
    assert here.errors == []
    line, = log('WARN')
    assert line == f'{TOPIC}: image dropped: the data are 3 bytes, 6x4 pixels of rgb8 need 72'


def test_a_change_of_resolution_in_flight_is_no_fault(start_node, client):
    """A driver that is reconfigured: windows of mixed sizes reach the model as they are."""
    model = ScriptedModel()
    here = start_node(model)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    sizes = [(4, 6), (4, 6), (48, 64), (48, 64), (1, 1)]
    for i, (height, width) in enumerate(sizes):
        camera.send((100 + i) * NS_PER_S, np.full((height, width, 3), i, np.uint8))
        wait_for(lambda n=i: len(rewards) >= n - 1)
    assert [frame.image.shape for frame in model.windows[-1].frames] == [(48, 64, 3), (48, 64, 3), (1, 1, 3)]


def test_a_change_of_encoding_in_flight_is_no_fault(start_node, client, log):
    """Colour, grey, a mosaic and sixteen bits on one topic; the model sees the colours of each."""
    model = ScriptedModel()
    here = start_node(model)
    activate(client)
    camera = here.camera(client)
    red, grey = np.full((4, 6, 3), (200, 40, 90), np.uint8), np.full((4, 6), 90, np.uint8)
    mosaic = np.array([[200, 40], [40, 90]] * 2, np.uint8)[:, [0, 1] * 3]
    forms = [
        ('rgb8', red), ('bgr8', red[..., ::-1]), ('mono8', grey), ('bayer_rggb8', mosaic),
        ('rgba16', np.dstack([red, grey]).astype('<u2') * 256)]
    for i, (encoding, numbers) in enumerate(forms):
        numbers = np.ascontiguousarray(numbers)
        camera.send((100 + i) * NS_PER_S, encoding=encoding, step=numbers.strides[0], data=numbers.tobytes())
        wait_for(lambda n=i: len(model.windows) >= n - 1)
    frames = {frame.stamp_ns // NS_PER_S - 100: frame for window in model.windows for frame in window.frames}
    colours = [tuple(frames[i].image[1, 1].tolist()) for i in range(5)]
    assert colours == [(200, 40, 90), (200, 40, 90), (90, 90, 90), (200, 40, 90), (200, 40, 90)]
    assert log('WARN') == []


def test_each_camera_that_sends_depth_is_refused_in_a_line_of_its_own(start_node, client, log):
    """Two depth topics chosen by mistake, ten images of each: two lines, and both in the diagnostics."""
    here = start_node(image_topics=['/left', '/right'])
    activate(client)
    cameras = [here.camera(client, topic) for topic in ('/left', '/right')]
    rewards = client.listen(RewardStamped, '/reward')
    for i in range(10):
        for camera in cameras:
            camera.send((100 + i) * NS_PER_S, encoding='16UC1')
    wait_for(lambda: all(camera.undecodable >= 3 for camera in here.node._monitor.cameras))
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    wait_for(lambda: diagnostics)
    why = 'the encoding is 16UC1: depth or other measurements; allowed: colour and grey images'
    assert sorted(log('WARN')) == [f'{topic}: image dropped: {why}' for topic in ('/left', '/right')]
    assert {(s.level, s.message) for s in camera_statuses(diagnostics[-1]).values()} == {
        (DiagnosticStatus.ERROR, f'no reward: {why}')}
    assert rewards == []


def test_a_bag_that_starts_over_goes_on_giving_rewards(start_node, client):
    """The stamps jump 94 s back: no window across the jump, rewards again after three frames."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    before = camera.stream(5, start_ns=194 * NS_PER_S)
    wait_for(lambda: len(rewards) >= 2)
    after = camera.stream(5, start_ns=100 * NS_PER_S)
    wait_for(lambda: frame_stamps(rewards[-1]) == after[-3:])
    assert all(set(frame_stamps(reward)) <= set(before) or set(frame_stamps(reward)) <= set(after)
               for reward in rewards)


def test_images_without_stamps_are_scored_and_warned_about_once(start_node, client, log):
    """Many drivers leave the stamp empty; the time of arrival stands in, in the messages too."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    for _ in range(5):
        camera.send(0)
        time.sleep(0.05)
    wait_for(lambda: len(rewards) >= 2)
    now = here.node.get_clock().now().nanoseconds
    assert all(0 <= now - stamp < 10 * NS_PER_S for reward in rewards for stamp in frame_stamps(reward))
    assert log('WARN') == [f'{TOPIC}: images have no stamp; the time of their arrival stands in']


def test_sim_time_without_a_clock_still_gives_rewards(start_node, client, log):
    """/clock has not come yet: pacing and ages are on the steady clock."""
    here = start_node(use_sim_time=True)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    stamps = camera.stream(6, start_ns=5 * NS_PER_S)
    wait_for(lambda: rewards)
    assert set(frame_stamps(rewards[0])) <= set(stamps)
    assert log('WARN') == []


def test_a_camera_that_stops_is_told_within_the_limit_and_gives_no_rewards(start_node, client):
    """Rewards end with the images; the diagnostics turn ERROR and name the topic; images again, OK again."""
    here = start_node(max_frame_age=0.5, frame_interval=0.0)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    name = f'reward_node: camera {TOPIC}'
    stamp_ns = 100 * NS_PER_S

    def film(condition) -> None:
        nonlocal stamp_ns
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline
            stamp_ns += 50_000_000
            camera.send(stamp_ns)
            time.sleep(0.05)

    film(lambda: rewards and any(camera_statuses(a)[name].level == DiagnosticStatus.OK for a in diagnostics))
    time.sleep(0.3)
    seen = len(rewards)
    del diagnostics[:]
    wait_for(lambda: any(
        camera_statuses(array)[name].level == DiagnosticStatus.ERROR for array in diagnostics), 5.0)
    message = camera_statuses(diagnostics[-1])[name].message
    assert message.startswith(f'no reward: the last image on {TOPIC} came ')
    assert len(rewards) == seen
    del diagnostics[:]
    film(lambda: any(camera_statuses(array)[name].level == DiagnosticStatus.OK for array in diagnostics))
    assert len(rewards) > seen


def test_two_nodes_in_namespaces_do_not_mix(start_node, client):
    """Relative topics follow the namespace; /diagnostics is shared and tells them apart by name."""
    start_node()
    executor = PooledExecutor(4, context=client.node.context)
    nodes = []
    try:
        for arm in ('left', 'right'):
            node = RewardNode(
                context=client.node.context, namespace=arm,
                parameter_overrides=[
                    Parameter(name, value=value) for name, value in (
                        ('task', arm), ('frame_interval', 0.0), ('rate', 100.0),
                        ('image_topics', ['camera/image_raw']))])
            nodes.append(node)
            executor.add_node(node)
        spinning = threading.Thread(target=executor.spin, daemon=True)
        spinning.start()
        for arm in ('left', 'right'):
            for transition in ('configure', 'activate'):
                assert client.transition(transition, f'{arm}/reward_node')
        camera = FakeCamera(client, '/left/camera/image_raw')
        left, right = (client.listen(RewardStamped, f'/{arm}/reward') for arm in ('left', 'right'))
        diagnostics = client.listen(DiagnosticArray, '/diagnostics')
        camera.stream(5)
        wait_for(lambda: left)
        assert (left[0].task, left[0].camera) == ('left', '/left/camera/image_raw')
        assert right == []
        wait_for(lambda: {'left/reward_node', 'right/reward_node'} <= {
            status.name for array in diagnostics for status in array.status})
    finally:
        executor.shutdown()
        spinning.join(5)
        for node in nodes:
            node.shut_down()
            node.destroy_node()


def test_subscriptions_match_best_effort_and_reliable_cameras(start_node, client):
    """Sensor-data QoS: the commonest reason for no images at all is a reliable subscriber."""
    here = start_node()
    activate(client)
    info, = here.node.get_subscriptions_info_by_topic(TOPIC)
    assert info.qos_profile.reliability == QoSReliabilityPolicy.BEST_EFFORT
    assert info.qos_profile.durability == QoSDurabilityPolicy.VOLATILE
    best_effort = QoSProfile(depth=5, reliability=QoSReliabilityPolicy.BEST_EFFORT)
    for qos in (best_effort, PLAIN):
        client.speak(FakeCamera.picture(0).__class__, TOPIC, qos)


@pytest.mark.parametrize('topic', ['/reward', '/reward/value', '/failure_event', '/failure_event/miss'])
def test_rewards_and_events_are_reliable_and_volatile(start_node, client, topic):
    """A controller must not miss an event, nor get an old one when it starts."""
    here = start_node()
    activate(client)
    info, = here.node.get_publishers_info_by_topic(topic)
    assert info.qos_profile.reliability == QoSReliabilityPolicy.RELIABLE
    assert info.qos_profile.durability == QoSDurabilityPolicy.VOLATILE
