"""Time: stamps that jump, repeat, lie or lack, simulated time, and clocks that do not agree."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rosgraph_msgs.msg import Clock

from densereward_ros.frames.window import Arrival
from densereward_ros.msg import RewardStamped
from densereward_ros.ros.clocks import ClockCheck
from densereward_ros.ros.messages import stamp_ns, to_time
from ros_bench import NS_PER_S, TOPIC, FakeCamera, ScriptedModel, wait_for

HOUR_NS = 3600 * NS_PER_S


def activate(client) -> None:
    """From unconfigured to active."""
    assert client.transition('configure')
    assert client.transition('activate')


def frame_stamps(reward: RewardStamped) -> list[int]:
    """The stamps of the three frames; the last is checked to be the reward's own."""
    stamps = [stamp_ns(stamp) for stamp in reward.frame_stamps]
    assert stamps[-1] == stamp_ns(reward.header.stamp)
    return stamps


def film(camera: FakeCamera, stamps) -> list[int]:
    """Send images with these stamps, 50 a second."""
    stamps = list(stamps)
    for stamp in stamps:
        camera.send(stamp)
        time.sleep(0.02)
    return stamps


def steady(start_ns: int, count: int, step_ns: int = NS_PER_S // 5) -> list[int]:
    """Stamps at one distance."""
    return [start_ns + i * step_ns for i in range(count)]


@pytest.mark.parametrize('jump_ns', [HOUR_NS, -HOUR_NS, 3 * NS_PER_S, -94 * NS_PER_S])
def test_no_window_spans_a_step_of_the_cameras_clock(start_node, client, jump_ns):
    """Forwards or back, as NTP and bags do it: rewards end, and go on after three frames of the new time."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    now_ns = time.time_ns()
    before = film(camera, steady(now_ns, 5))
    after = film(camera, steady(before[-1] + jump_ns, 5))
    wait_for(lambda: rewards and frame_stamps(rewards[-1]) == after[-3:])
    for reward in rewards:
        stamps = set(frame_stamps(reward))
        assert stamps <= set(before) or stamps <= set(after)


def test_a_bag_that_loops_gives_the_same_windows_each_time(start_node, client):
    """Every round is scored alike, and none of its windows reaches into another."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward', 100)
    stamps = steady(100 * NS_PER_S, 20)
    for _ in range(3):
        film(camera, stamps)
    wait_for(lambda: rewards[-1].header.stamp == to_time(stamps[-1]))
    time.sleep(0.1)
    windows = [tuple(frame_stamps(reward)) for reward in rewards]
    assert set(windows) <= set(zip(stamps, stamps[1:], stamps[2:]))
    assert windows.count(tuple(stamps[-3:])) == 3


def test_repeated_and_late_images_make_no_window(start_node, client):
    """Each image twice, and now and then one from before: stamps of a reward grow, no window comes twice."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward', 100)
    stamps = steady(time.time_ns(), 10)
    film(camera, itertools.chain.from_iterable((stamp, stamp, stamp - NS_PER_S // 10) for stamp in stamps))
    wait_for(lambda: rewards and frame_stamps(rewards[-1]) == stamps[-3:])
    newest = [frame_stamps(reward)[-1] for reward in rewards]
    assert newest == sorted(set(newest))
    assert here.node._monitor.cameras[0].arrivals[Arrival.OUT_OF_ORDER] == 20


def test_random_stamps_never_break_the_order_within_a_window(start_node, client):
    """Jumps, repeats and nonsense in any order: whatever is published is three images in their order."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward', 1000)
    chance = random.Random(0)
    stamp, sent = 100 * NS_PER_S, set()
    for _ in range(150):
        stamp += chance.choice([0, -NS_PER_S // 20, HOUR_NS, -HOUR_NS] + [NS_PER_S // 10] * 12)
        sent.add(stamp)
        camera.send(stamp)
        if chance.random() < 0.1:
            message = FakeCamera.picture(0)
            message.header.stamp = Time(sec=2**31 - 1, nanosec=2**32 - 1)
            camera.publisher.publish(message)
        time.sleep(0.003)
    film(camera, steady(stamp + HOUR_NS, 4))
    wait_for(lambda: rewards and rewards[-1].header.stamp == to_time(stamp + HOUR_NS + 3 * NS_PER_S // 5))
    for reward in rewards:
        first, second, third = frame_stamps(reward)
        assert first < second < third <= first + 4 * NS_PER_S
    assert here.errors == []
    assert here.node._monitor.worker.failures_in_a_row == 0


@pytest.mark.parametrize(('sec', 'nanosec'), [(0, 0), (2**31 - 1, 2**32 - 1), (0, NS_PER_S)])
def test_a_stamp_that_is_none_is_replaced_by_the_arrival(start_node, client, log, sec, nanosec):
    """Left out, or beyond what a time can be: rewards go on, one warning."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    message = FakeCamera.picture(0)
    for _ in range(5):
        camera.send(0, header=message.header.__class__(stamp=Time(sec=sec, nanosec=nanosec)))
        time.sleep(0.02)
    wait_for(lambda: rewards)
    assert abs(frame_stamps(rewards[0])[-1] - time.time_ns()) < 10 * NS_PER_S
    assert log('WARN', clocks=True) == [f'{TOPIC}: images have no stamp; the time of their arrival stands in']


@pytest.mark.parametrize(('skew_ns', 'words'), [
    (HOUR_NS, '3600.0 s ahead of'), (-HOUR_NS, '3600.0 s behind')])
def test_a_camera_with_another_clock_gives_rewards_and_one_warning(start_node, client, log, skew_ns, words):
    """The warning names both clocks and their times; the diagnostics tell how far they are apart."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    stamps = [camera.send(time.time_ns() + skew_ns).header.stamp for _ in range(8)]
    wait_for(lambda: rewards and rewards[-1].header.stamp == stamps[-1])
    line, = log('WARN', clocks=True)
    assert line.startswith(f"{TOPIC}: the camera's clock (")
    assert f"UTC) is {words} this machine's clock (" in line
    assert line.endswith("UTC); rewards go on, with the camera's stamps")
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')

    def offsets() -> list[float]:
        return [
            float(pair.value) for array in diagnostics for status in array.status
            for pair in status.values if pair.key == 'stamp offset (s)']

    wait_for(offsets)
    assert offsets()[0] == pytest.approx(-skew_ns / NS_PER_S, abs=5.0)


def test_a_camera_in_step_with_this_machine_gives_no_warning(start_node, client, log):
    """Half a second is transport, not another clock."""
    here = start_node()
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    for _ in range(6):
        camera.send(time.time_ns() - NS_PER_S // 2)
    wait_for(lambda: rewards)
    assert log('WARN', clocks=True) == []


def test_simulated_time_may_step_both_ways(start_node, client, log):
    """/clock restarts with the simulator, and the images with it: pacing, ages and rewards do not care."""
    here = start_node(use_sim_time=True, max_frame_age=1.0)
    activate(client)
    clock = client.speak(Clock, '/clock')
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    for start_s in (500, 20, 9000):
        stamps = steady(start_s * NS_PER_S, 5)
        for stamp in stamps:
            clock.publish(Clock(clock=to_time(stamp)))
            wait_for(lambda stamp=stamp: here.node.get_clock().now().nanoseconds == stamp)
            camera.send(stamp)
        wait_for(lambda stamps=stamps: rewards and frame_stamps(rewards[-1]) == stamps[-3:])
    assert log('WARN', clocks=True) == []


def test_images_with_wall_clock_stamps_under_simulated_time_are_told(start_node, client, log):
    """A real camera beside a simulator: the warning names /clock."""
    here = start_node(use_sim_time=True)
    activate(client)
    clock = client.speak(Clock, '/clock')
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    clock.publish(Clock(clock=to_time(20 * NS_PER_S)))
    wait_for(lambda: here.node.get_clock().now().nanoseconds)
    film(camera, steady(1_796_079_648 * NS_PER_S, 4))
    wait_for(lambda: rewards)
    line, = log('WARN', clocks=True)
    assert line == (
        f"{TOPIC}: the camera's clock (2026-11-30 23:00:48 UTC) is 1796079628.0 s ahead of the simulated "
        "time of /clock (20.0 s); rewards go on, with the camera's stamps")


def test_a_camera_that_dies_ends_the_rewards_whatever_its_stamps_say(start_node, client):
    """An hour ahead, its last image never looks old by its stamp; it is stale all the same."""
    model = ScriptedModel(delay_s=0.05)
    here = start_node(model, max_frame_age=0.3, rate=2.0)
    activate(client)
    camera, rewards = here.camera(client), client.listen(RewardStamped, '/reward')
    film(camera, steady(time.time_ns() + HOUR_NS, 12, NS_PER_S // 50))
    last = time.monotonic()
    time.sleep(1.5)
    assert rewards
    assert here.node._monitor.cameras[0].age_s() == pytest.approx(time.monotonic() - last, abs=0.2)
    assert len(rewards) <= 2


def test_the_check_tells_once_and_not_before_simulated_time_begins():
    """Less than a second apart is agreement."""
    now_ns = time.time_ns()
    check = ClockCheck()
    assert check.offset_s is None
    assert check.complaint(now_ns, 0, True) == '' and check.offset_s is None
    assert check.complaint(now_ns - NS_PER_S // 4, now_ns, False) == ''
    assert check.offset_s == pytest.approx(0.25, abs=0.2)
    assert 'ahead of' in check.complaint(now_ns + HOUR_NS, now_ns, False)
    assert check.complaint(now_ns + HOUR_NS, now_ns, False) == ''
    # Without a stamp there is no offset, and that too is told once.
    assert 'no stamp' in check.complaint(0, now_ns, False) and check.offset_s is None
    assert check.complaint(0, now_ns, False) == ''
