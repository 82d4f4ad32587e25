"""A robot's whole day in half an hour: all that goes wrong, at random, and what is left of the node then.

`python benchmark/soak.py --minutes 30` ends with a table of what happened and an exit code: 0 when every
reward was true, nothing was published while the node was inactive, it never died but by kill -9, it still
gave rewards at the end, and its memory, threads and handles were flat. In the first fifth of the time the
node is killed and started again; in the rest its process is measured.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from sensor_msgs.msg import CompressedImage
from soak_camera import Camera
from std_msgs.msg import String
from std_srvs.srv import Trigger

from densereward_ros.msg import FailureEvent, RewardStamped
from densereward_ros.ros.messages import stamp_ns

CAMERAS = ('/soak/left', '/soak/right/compressed')
TASKS = ('put the red block on the blue plate', 'stack the cups', 'öffne die Schublade', '')
BAD_TASKS = ('two\nlines', '<|im_end|>', 'x' * 501)
REPLIES = 10_000
# Flat: what the last third of the measured time may have more than the first. Each configure loads a model
# anew, and what the allocator keeps of the last one differs by some megabytes.
MEMORY_MB, THREADS, HANDLES = 40.0, 2, 4


class Soak:
    """The driver: cameras, a manager, a controller, and somebody who looks now and then."""

    def __init__(self, seed: int, log: Path) -> None:
        self.happened: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.rewards = 0
        self._chance = random.Random(seed)
        self._log = log.open('ab')
        self._node = rclpy.create_node('soak')
        self._silent_since: float | None = 0.0
        self._sequence = 0
        self._looking = None
        self._node.create_subscription(RewardStamped, '/reward', self._on_reward, 100)
        self._node.create_subscription(FailureEvent, '/failure_event', self._on_event, 100)
        self._task = self._node.create_publisher(String, '/reward_node/task', 10)
        self._change = self._node.create_client(ChangeState, '/reward_node/change_state')
        self._get = self._node.create_client(GetState, '/reward_node/get_state')
        self._reset = self._node.create_client(Trigger, '/reward_node/reset')
        self.cameras = {
            topic: Camera(self._node, topic, seed + i, self.happened) for i, topic in enumerate(CAMERAS)}
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._ended = threading.Event()
        self._spinning = threading.Thread(target=self._spin, daemon=True)
        self._spinning.start()
        self.start_node()
        for camera in self.cameras.values():
            camera.start()

    def _spin(self) -> None:
        while not self._ended.is_set():
            try:
                self._executor.spin_once(timeout_sec=0.1)
            except ExternalShutdownException:
                return

    def start_node(self) -> None:
        """A new process, not configured yet."""
        self._sequence = 0
        topics = '[' + ', '.join(f"'{topic}'" for topic in CAMERAS) + ']'
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name('soak_node.py'), '--ros-args', '-p', 'model:=tabletop',
             '-p', f'image_topics:={topics}', '-p', 'frame_interval:=0.1', '-p', 'rate:=10.0', '-p',
             f'task:={TASKS[0]}', '-p', 'cooldown:=0.5'],
            stdout=self._log, stderr=self._log, env={**os.environ, 'OMP_NUM_THREADS': '1'})

    def kill(self) -> None:
        """kill -9, and a new process."""
        self.happened['node: killed and respawned'] += 1
        self.process.kill()
        self.process.wait()
        self._silent_since = time.monotonic()
        self.start_node()

    def call(self, client, request, timeout_s: float = 15.0):
        """The answer, or None when there is none in time, for instance since the node was just killed."""
        if not client.wait_for_service(timeout_s):
            return None
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if done.wait(timeout_s):
            return future.result()
        client.remove_pending_request(future)
        return None

    def state(self) -> str:
        """The lifecycle state; '' when nobody answers."""
        answer = self.call(self._get, GetState.Request(), 3.0)
        return answer.current_state.label if answer else ''

    def transition(self, name: str) -> bool:
        """One transition, and from when to when the node must be silent."""
        if name == 'activate':
            self._silent_since = None
        request = ChangeState.Request(transition=Transition(label=name))
        answer = self.call(self._change, request, 60.0)
        done = bool(answer and answer.success)
        if name == 'deactivate' and done:
            self._silent_since = time.monotonic()
        self.happened[f'transition: {name} {"done" if done else "refused or failed"}'] += 1
        return done

    def bring_up(self) -> bool:
        """Configure and activate, as often as it takes: one configure of five fails."""
        deadline = time.monotonic() + 120
        while (state := self.state()) != 'active':
            if time.monotonic() > deadline:
                self.wrong.append(f'the node cannot be activated any more, it is {state or "silent"}')
                return False
            # Without an answer the question went to a process that was killed: others see it for 20 s more.
            if state in ('unconfigured', 'inactive'):
                self.transition('configure' if state == 'unconfigured' else 'activate')
        return True

    def act(self) -> None:
        """Something that managers, operators and controllers do."""
        deed = self._chance.choices(
            ('restart', 'reload', 'illegal', 'task', 'bad task', 'reset', 'look', 'look away'),
            (6, 1, 3, 6, 2, 4, 4, 4))[0]
        self.happened[f'deed: {deed}'] += 1
        if deed in ('restart', 'reload'):
            self.transition('deactivate')
            time.sleep(self._chance.uniform(0.0, 1.5))
            if deed == 'reload':
                self.transition('cleanup')
            self.bring_up()
        elif deed == 'illegal':
            self.transition(self._chance.choice(('configure', 'cleanup', 'activate')))
        elif deed == 'task':
            self._task.publish(String(data=self._chance.choice(TASKS)))
            time.sleep(2.0)
            self._task.publish(String(data=TASKS[0]))
        elif deed == 'bad task':
            self._task.publish(String(data=self._chance.choice(BAD_TASKS)))
        elif deed == 'reset':
            self.call(self._reset, Trigger.Request())
        elif deed == 'look' and self._looking is None:
            self._looking = self._node.create_subscription(
                CompressedImage, '/reward_node/debug_image/compressed', self._on_picture, 1)
        elif deed == 'look away' and self._looking is not None:
            self._node.destroy_subscription(self._looking)
            self._looking = None

    def _on_picture(self, message: CompressedImage) -> None:
        self.happened['debug images seen'] += 1

    def _on_reward(self, reward: RewardStamped) -> None:
        self.rewards += 1
        camera = self.cameras.get(reward.camera)
        silent_since = self._silent_since
        if camera is None or not 0.0 <= reward.reward <= 1.0 or not 1 <= reward.reason <= 6:
            self.wrong.append(f'a reward of {reward.reward}, reason {reward.reason} of {reward.camera!r}')
            return
        if silent_since is not None and (late_s := time.monotonic() - silent_since) > 1.0:
            self.wrong.append(f'a reward {late_s:.1f} s after the node was deactivated')
        stamps = [stamp_ns(stamp) for stamp in reward.frame_stamps]
        unstamped = time.monotonic() - camera.unstamped_at < 10.0
        if stamps != sorted(set(stamps)) or not (unstamped or set(stamps) <= set(camera.sent)):
            self.wrong.append(f'frame stamps {stamps} that {reward.camera} never sent')
        if stamp_ns(reward.header.stamp) != stamps[-1]:
            self.wrong.append("a stamp that is not the newest frame's")

    def _on_event(self, event: FailureEvent) -> None:
        self.happened['failure events'] += 1
        # A configure begins to count again.
        if event.sequence not in (self._sequence + 1, 1):
            self.wrong.append(f'event {event.sequence} after event {self._sequence}')
        self._sequence = event.sequence

    def close(self) -> int:
        """End cameras and node; the node's exit code."""
        for camera in self.cameras.values():
            camera.stop.set()
            camera.join()
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._ended.set()
        self._spinning.join()
        self._node.destroy_node()
        return code


def used(pid: int) -> tuple[float, int, int]:
    """Resident memory in MB, threads and open handles of a process."""
    status = dict(
        line.split(':', 1) for line in Path(f'/proc/{pid}/status').read_text().splitlines() if ':' in line)
    return (
        int(status['VmRSS'].split()[0]) / 1024, int(status['Threads']), len(os.listdir(f'/proc/{pid}/fd')))


def run(soak: Soak, minutes: float, chance: random.Random) -> list[tuple[float, int, int]]:
    """Let everything happen; returns what the process used, a sample a second."""
    begun = time.monotonic()
    end, kills_end = begun + 60 * minutes, begun + 12 * minutes
    samples: list[tuple[float, int, int]] = []
    soak.bring_up()
    next_kill = begun + chance.uniform(5, 20)
    next_sample = next_word = 0.0
    while time.monotonic() < end or minutes >= 30 and soak.rewards < REPLIES:
        now = time.monotonic()
        if soak.process.poll() is not None:
            soak.wrong.append(f'the node ended by itself with {soak.process.returncode}')
            return samples
        if next_kill < now < kills_end:
            soak.kill()
            soak.bring_up()
            next_kill = time.monotonic() + chance.uniform(5, 40)
        elif chance.random() < 0.1:
            soak.act()
        if now > kills_end and now > next_sample:
            next_sample = now + 1.0
            samples.append(used(soak.process.pid))
        if now > next_word:
            next_word = now + 60.0
            minute = (now - begun) / 60
            print(f'{minute:5.1f} min  {soak.rewards} rewards, wrong: {len(soak.wrong)}', flush=True)
        time.sleep(0.2)
    soak.bring_up()
    before, deadline = soak.rewards, time.monotonic() + 60
    while soak.rewards < before + 10:
        if time.monotonic() > deadline:
            soak.wrong.append('no more rewards at the end')
            break
        time.sleep(0.2)
    return samples


def flat(samples: list[tuple[float, int, int]], wrong: list[str]) -> list[str]:
    """Lines about memory, threads and handles; what grew is added to what went wrong."""
    third = len(samples) // 3
    if not third:
        wrong.append('too short to measure anything')
        return []
    lines = []
    kinds = {'memory (MB)': MEMORY_MB, 'threads': THREADS, 'handles': HANDLES}
    for (name, allowed), values in zip(kinds.items(), zip(*samples)):
        first, last = statistics.median(values[:third]), statistics.median(values[-third:])
        lines.append(f'{name:<44}{first:8.0f} ->{last:6.0f}, most {max(values):.0f}')
        if last > first + allowed:
            wrong.append(f'{name} grew from {first:.0f} to {last:.0f}')
    return lines


def main() -> int:
    """Soak, print, and say by the exit code whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=30.0, help='30 or more also means 10,000 rewards')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.SystemRandom().randrange(1, 102)))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    log = Path(tempfile.mkdtemp(prefix='soak_')) / 'reward_node.log'
    print(f"seed {options.seed}, the node's log is {log}", flush=True)
    rclpy.init()
    soak = Soak(options.seed, log)
    try:
        samples = run(soak, options.minutes, random.Random(options.seed))
    finally:
        code = soak.close()
    rclpy.try_shutdown()
    if code != 0:
        soak.wrong.append(f'exit code {code} on Ctrl-C')
    if any(line.startswith('[FATAL]') for line in log.read_text(errors='replace').splitlines()):
        soak.wrong.append('a text from outside wrote a log line of its own')
    for name, count in sorted(soak.happened.items()):
        print(f'{name:<44}{count:8}')
    print(f'{"rewards, each checked":<44}{soak.rewards:8}')
    print('\n'.join(flat(samples, soak.wrong)))
    for line, count in Counter(soak.wrong).most_common(20):
        print(f'WRONG ({count}): {line}')
    print('soak: failed' if soak.wrong else 'soak: passed')
    return 1 if soak.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
