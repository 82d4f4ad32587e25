"""The worker thread: newest window wins, nothing queues, and nothing comes after pause()."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from densereward_ros.models.base import OutOfMemory, Unanswered
from densereward_ros.ros import batch_limit, inference
from densereward_ros.ros.cameras import Camera
from densereward_ros.ros.inference import InferenceWorker
from densereward_ros.types import Frame, ImageError, MalformedReply, Reason, Verdict, Window
from ros_bench import ScriptedModel, wait_for

MS = 1_000_000
GOOD = Verdict(0.5, Reason.CORRECT)


class Ear:
    """A Listener that keeps what it is told, and from which thread."""

    def __init__(self) -> None:
        self.verdicts: list[tuple[str, tuple[int, ...], Verdict, float]] = []
        self.windows: list[Window] = []
        self.malformed: list[MalformedReply] = []
        self.bad_images: list[tuple[str, str]] = []
        self.errors: list[Exception] = []
        self.deprived: list[list[str]] = []
        self.faults: list[Exception] = []
        self.times: list[float] = []
        self.deaf_to: set[str] = set()

    def on_verdict(self, camera: Camera, window: Window, verdict: Verdict, inference_s: float) -> None:
        """See Listener."""
        if camera.topic in self.deaf_to:
            raise ValueError('cannot publish')
        self.times.append(time.monotonic())
        self.windows.append(window)
        stamps = tuple(frame.stamp_ns // MS for frame in window.frames)
        self.verdicts.append((camera.topic, stamps, verdict, inference_s))

    def on_malformed(self, camera: Camera, reply: MalformedReply) -> None:
        """See Listener."""
        self.malformed.append(reply)

    def on_bad_image(self, camera: Camera, error: ImageError) -> None:
        """See Listener."""
        self.bad_images.append((camera.topic, str(error)))

    def on_model_error(self, cameras: Sequence[Camera], error: Exception) -> None:
        """See Listener."""
        self.errors.append(error)
        self.deprived.append([camera.topic for camera in cameras])

    def on_fault(self, error: Exception) -> None:
        """See Listener."""
        self.faults.append(error)


class Desk:
    """A worker on its cameras, and frames to feed it."""

    def __init__(self, model: ScriptedModel, cameras: int, rate: float) -> None:
        self.model, self.ear = model, Ear()
        self.cameras = [Camera(f'/camera{i}', 0.0, 5.0) for i in range(cameras)]
        self.worker = InferenceWorker(model, self.cameras, self.ear)
        self.worker.set_rate(rate)
        self.worker.new_episode('stack the cup')
        self.worker.resume()

    def feed(self, *stamps_ms: int, camera: int = 0, decode: Callable[[], np.ndarray] | None = None) -> None:
        """Frames with these stamps, in order; wakes the worker as the node does."""
        for stamp_ms in stamps_ms:
            image = decode or (lambda: np.zeros((2, 2, 3), np.uint8))
            if self.cameras[camera].add(Frame(stamp_ms * MS, time.monotonic_ns(), image)):
                self.worker.wake()


    def wait_for_verdicts(self, count: int) -> None:
        """Until so many have been heard since the start."""
        wait_for(lambda: len(self.ear.verdicts) >= count)

    def feed_together(self, stamp_ms: int) -> None:
        """The next frame of every camera, so that all their windows are due in the same tick."""
        with self.worker.between_verdicts():
            for i, camera in enumerate(self.cameras):
                self.feed(*([] if camera.arrivals else [0, 200]), stamp_ms, camera=i)


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    """Sets a desk up, and checks that its thread ends."""
    desks: list[Desk] = []

    def set_up(model: ScriptedModel | None = None, cameras: int = 1, rate: float = 100.0) -> Desk:
        desks.append(Desk(model or ScriptedModel(), cameras, rate))
        return desks[-1]

    yield set_up
    for one in desks:
        one.worker.stop()
        assert not one.worker._thread.is_alive()


def unreadable() -> np.ndarray:
    """A decoder that finds a truncated image."""
    raise ImageError('the data are 3 bytes')


def test_a_window_becomes_a_verdict(desk):
    """Three frames, one reply: the window, the model's verdict and the seconds it took reach the listener."""
    at = desk(ScriptedModel([GOOD], delay_s=0.05))
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.verdicts)
    (topic, stamps, verdict, inference_s), = at.ear.verdicts
    assert (topic, stamps, verdict) == ('/camera0', (0, 200, 400), GOOD)
    assert inference_s == pytest.approx(0.05, abs=0.045)
    assert at.ear.windows[0].task == 'stack the cup'
    assert at.cameras[0].last_verdict is GOOD
    assert (at.worker.replies, at.worker.malformed, list(at.worker.latencies_s)) == (1, 0, [inference_s])


def test_the_newest_window_wins_and_the_others_are_skipped(desk):
    """While the model thinks, frames come and go; it is asked about the last of them, not the next."""
    at = desk(ScriptedModel([GOOD], delay_s=0.3))
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    at.feed(*range(600, 2600, 200))
    wait_for(lambda: len(at.ear.verdicts) == 2)
    assert at.ear.verdicts[1][1] == (2000, 2200, 2400)
    assert at.cameras[0].skipped_windows == 9
    time.sleep(0.4)
    assert len(at.model.batches) == 2


def test_between_windows_that_slide_the_model_reads_ahead(desk):
    """The two frames that the next window will begin with; not where windows share no such frames."""
    at = desk()
    at.feed(0, 200, 400)
    wait_for(lambda: len(at.ear.verdicts) == 1)
    at.feed(600)
    wait_for(lambda: at.model.prepared)
    assert [frame.stamp_ns // MS for frame in at.model.prepared[0].frames] == [400, 600]
    for frame in (800, 1000, 1200):
        at.cameras[0].add(Frame(frame * MS, time.monotonic_ns(), lambda: np.zeros((2, 2, 3), np.uint8)))
    at.worker.wake()
    wait_for(lambda: len(at.ear.verdicts) == 3)
    time.sleep(0.05)
    assert len(at.model.prepared) == 1
    assert at.ear.errors == []


def test_the_same_window_is_never_scored_twice(desk):
    """A camera that stops leaves a complete window behind; one reply to it is enough."""
    at = desk()
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.verdicts)
    for _ in range(20):
        at.worker.wake()
        time.sleep(0.005)
    assert len(at.model.batches) == 1


def test_windows_are_scored_in_order_and_share_no_gap(desk):
    """A model that keeps up sees every window, each one frame further than the last."""
    at = desk(rate=1000.0)
    for stamp in range(0, 4000, 200):
        at.feed(stamp)
        time.sleep(0.01)
    wait_for(lambda: len(at.ear.verdicts) == 18)
    assert [stamps for _, stamps, _, _ in at.ear.verdicts] == [
        (t, t + 200, t + 400) for t in range(0, 3600, 200)]


def test_no_verdict_after_pause(desk):
    """Deactivated means silent: a reply that was under way is thrown away, and the model is told to stop."""
    at = desk(ScriptedModel([GOOD], delay_s=30.0))
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    started = time.monotonic()
    at.worker.pause()
    assert time.monotonic() - started < 0.5
    at.feed(600, 800, 1000)
    time.sleep(0.2)
    assert at.ear.verdicts == []
    assert len(at.model.batches) == 1


def test_no_verdict_after_pause_from_a_model_that_does_not_listen(desk):
    """interrupt() is a request; a model that answers all the same is not heard."""
    at = desk()
    at.model.interrupt = lambda: None
    release = threading.Event()
    at.model.script = lambda window: release.wait(10) and GOOD
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    at.worker.pause()
    release.set()
    time.sleep(0.2)
    assert at.ear.verdicts == []
    assert at.worker.replies == 0


def test_resume_scores_again(desk):
    """After pause and resume the next window is scored; the interruption is not an error."""
    at = desk(ScriptedModel([GOOD], delay_s=0.2))
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    at.worker.pause()
    at.worker.new_episode('stack the cup')
    at.worker.resume()
    at.feed(1000, 1200, 1400)
    wait_for(lambda: at.ear.verdicts)
    assert [stamps for _, stamps, _, _ in at.ear.verdicts] == [(1000, 1200, 1400)]
    assert at.ear.errors == []


def test_a_verdict_of_the_last_episode_is_dropped(desk):
    """The task changed while the model thought: its answer is to a question that nobody asks any more."""
    at = desk(ScriptedModel([GOOD], delay_s=0.2))
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    at.worker.new_episode('open the drawer')
    at.feed(600, 800)
    time.sleep(0.4)
    assert at.ear.verdicts == []
    at.feed(1000)
    wait_for(lambda: at.ear.verdicts)
    assert at.ear.verdicts[0][1] == (600, 800, 1000)
    assert at.ear.windows[0].task == 'open the drawer'


def test_without_a_task_nothing_is_scored(desk):
    """An empty task is no question; with one the next window is scored."""
    at = desk()
    at.worker.new_episode('')
    at.feed(0, 200, 400)
    time.sleep(0.2)
    assert at.model.batches == []
    at.worker.new_episode('stack the cup')
    at.feed(600, 800, 1000)
    wait_for(lambda: at.ear.verdicts)


def test_a_model_that_raises_is_told_and_asked_again(desk):
    """Out of GPU memory once must not end the monitoring."""
    at = desk(ScriptedModel([RuntimeError('CUDA out of memory'), GOOD]))
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.errors)
    assert str(at.ear.errors[0]) == 'CUDA out of memory'
    assert at.worker.failures_in_a_row == 1
    at.feed(600)
    wait_for(lambda: at.ear.verdicts)
    wait_for(lambda: at.worker.failures_in_a_row == 0)
    assert at.ear.verdicts[0][1] == (200, 400, 600)


def test_a_server_that_answers_for_some_cameras_costs_only_the_others(desk):
    """Those with an answer are told; those without are named, and the tick counts as failed."""
    outcomes = [GOOD, None, MalformedReply('x', 'no </think>')]

    def partly(window: Window) -> Verdict:
        raise Unanswered('no answer in time', outcomes)

    at = desk(ScriptedModel(partly), cameras=3)
    with at.worker.between_verdicts():
        for camera in range(3):
            at.feed(0, 200, 400, camera=camera)
    wait_for(lambda: at.ear.malformed)
    assert [topic for topic, *_ in at.ear.verdicts] == ['/camera0']
    assert at.ear.deprived == [['/camera1']]
    assert str(at.ear.errors[0]) == 'no answer in time'
    assert (at.worker.replies, at.worker.malformed) == (2, 1)
    wait_for(lambda: at.worker.failures_in_a_row == 1)


def test_a_listener_that_raises_does_not_end_the_thread(desk):
    """Publishing can fail; a node that then is active and silent for ever would be the worst outcome."""
    at = desk()
    at.ear.deaf_to = {'/camera0'}
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.faults)
    assert at.worker.untold_in_a_row == 1
    at.ear.deaf_to = set()
    at.feed(600)
    wait_for(lambda: at.ear.verdicts)
    assert at.worker.untold_in_a_row == 0
    assert at.ear.errors == []


def test_a_listener_that_raises_costs_no_other_camera_its_reward(desk):
    """Of two cameras in a batch the second is told, and nobody says that the model failed."""
    at = desk(cameras=2)
    at.ear.deaf_to = {'/camera0'}
    at.feed_together(400)
    wait_for(lambda: at.ear.verdicts)
    assert [topic for topic, _, _, _ in at.ear.verdicts] == ['/camera1']
    assert [str(fault) for fault in at.ear.faults] == ['cannot publish']
    assert (at.ear.errors, at.worker.failures_in_a_row) == ([], 0)


def test_a_listener_that_cannot_even_say_so_does_not_end_the_thread(desk):
    """The logger may be gone as well, when the process ends."""
    at = desk()
    at.ear.deaf_to = {'/camera0'}
    at.ear.on_fault = lambda error: 1 / 0
    at.feed(0, 200, 400)
    wait_for(lambda: at.worker.untold_in_a_row)
    at.ear.deaf_to = set()
    at.feed(600)
    wait_for(lambda: at.ear.verdicts)


class Cramped(ScriptedModel):
    """A model with memory for so many windows at once."""

    room = 1

    def score(self, windows):
        """See RewardModel.score."""
        outcomes = super().score(windows)
        if len(windows) > self.room:
            raise OutOfMemory('scripted ran out of GPU memory')
        return outcomes


def test_after_running_out_of_memory_fewer_windows_are_scored_at_once(desk):
    """Four cameras, memory for one window: soon every tick gives every camera its reward, one by one."""
    at = desk(Cramped(), cameras=4)
    at.feed_together(400)
    wait_for(lambda: at.ear.errors)
    assert isinstance(at.ear.errors[0], OutOfMemory)
    assert (at.worker.batch_limit.now, at.worker.failures_in_a_row) == (2, 1)
    at.feed_together(600)
    wait_for(lambda: len(at.ear.verdicts) == 2)
    assert at.ear.deprived == [
        ['/camera0', '/camera1', '/camera2', '/camera3'], ['/camera0', '/camera1']]
    for stamp in (800, 1000):
        at.feed_together(stamp)
        at.wait_for_verdicts(6 if stamp == 800 else 10)
    assert [(topic, stamps[-1]) for topic, stamps, _, _ in at.ear.verdicts[2:]] == [
        (f'/camera{i}', stamp) for stamp in (800, 1000) for i in range(4)]
    wait_for(lambda: at.worker.failures_in_a_row == 0)
    assert [len(batch) for batch in at.model.batches] == [4, 2, *[1] * 10]
    assert (at.worker.batch_limit.now, at.worker.out_of_memory) == (1, 2)


def test_a_tick_in_lots_is_one_tick(desk):
    """The reply rate of each camera is told, not that of the lots."""
    at = desk(cameras=3)
    at.worker.batch_limit.now = 2
    at.feed_together(400)
    wait_for(lambda: len(at.ear.verdicts) == 3)
    assert [len(batch) for batch in at.model.batches] == [2, 1]
    assert at.worker.ticks.count == 1


def test_the_limit_rises_again(desk, monkeypatch):
    """When memory is free again, all cameras are scored in one batch again."""
    monkeypatch.setattr(batch_limit, 'RETRY_S', 0.05)
    at = desk(Cramped(), cameras=2)
    at.feed_together(400)
    wait_for(lambda: at.ear.errors)
    at.model.room = 2
    time.sleep(0.1)
    for count, stamp in ((2, 600), (4, 800)):
        at.feed_together(stamp)
        at.wait_for_verdicts(count)
        time.sleep(0.05)
    assert [len(batch) for batch in at.model.batches] == [2, 1, 1, 2]


def test_memory_that_runs_out_while_reading_ahead_costs_no_reward(desk):
    """It is told, nothing is lost, and no more is read ahead while memory is short."""
    def prepare(windows):
        at.model.prepared += windows
        raise OutOfMemory('scripted ran out of GPU memory')

    at = desk()
    at.model.prepare = prepare
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.verdicts)
    at.feed(600)
    wait_for(lambda: at.ear.errors)
    assert at.ear.deprived == [[]]
    for count, stamp in ((3, 800), (4, 1000)):
        at.feed(stamp)
        at.wait_for_verdicts(count)
    assert (len(at.model.prepared), at.worker.failures_in_a_row, at.worker.out_of_memory) == (1, 0, 1)


def test_the_share_of_corrected_replies(desk):
    """Of the last replies, once there are twenty; before, a few corrections say nothing."""
    at = desk()

    def script(window):
        at.model.corrected += len(at.model.batches) % 4 == 0
        return GOOD

    at.model.script = script
    for i in range(24):
        at.feed(*([0, 200, 400] if i == 0 else [400 + 200 * i]))
        at.wait_for_verdicts(i + 1)
        if i == 18:
            assert at.worker.corrected_share == 0.0
    assert at.worker.corrected_share == 0.25


def test_a_model_with_too_few_outcomes_is_an_error(desk):
    """One outcome a window is the contract; a mix-up of cameras must not pass silently."""
    at = desk(cameras=2)
    at.model.score = lambda windows: [GOOD]
    at.feed_together(400)
    wait_for(lambda: at.ear.errors)
    assert str(at.ear.errors[0]) == '1 outcomes for 2 windows'
    assert at.ear.verdicts == []


def test_malformed_replies_are_told_and_counted_and_are_no_verdict(desk):
    """A malformed reply is a reply (rate, latency) but never a reward."""
    at = desk(ScriptedModel([MalformedReply('<think>dance', 'no </think>'), GOOD]))
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.malformed)
    assert at.ear.malformed[0].why == 'no </think>'
    assert at.cameras[0].last_verdict is None
    assert (at.worker.replies, at.worker.malformed, len(at.worker.latencies_s)) == (1, 1, 1)
    assert at.worker.malformed_in_a_row == 1
    at.feed(600)
    wait_for(lambda: at.ear.verdicts)
    assert (at.worker.replies, at.worker.malformed, at.worker.malformed_in_a_row) == (2, 1, 0)


def test_a_bad_image_is_dropped_and_the_next_frames_score_again(desk):
    """A truncated image costs one frame, not the stream, and the model never sees it."""
    at = desk()
    at.feed(0, 200)
    at.feed(400, decode=unreadable)
    wait_for(lambda: at.ear.bad_images)
    assert at.ear.bad_images == [('/camera0', 'the data are 3 bytes')]
    assert at.model.batches == []
    assert at.cameras[0].undecodable == 1
    at.feed(600)
    wait_for(lambda: at.ear.verdicts)
    assert at.ear.verdicts[0][1] == (0, 200, 600)


def test_a_decoder_that_breaks_in_another_way_does_not_end_the_thread(desk):
    """Whatever a decoder raises, for instance MemoryError on a huge picture, the next window is tried."""
    def broken() -> np.ndarray:
        raise MemoryError('Unable to allocate 11.2 GiB')

    at = desk()
    at.feed(0, 200)
    at.feed(400, decode=broken)
    wait_for(lambda: at.ear.bad_images)
    assert at.ear.bad_images == [
        ('/camera0', 'decoding it failed: MemoryError: Unable to allocate 11.2 GiB')]
    at.feed(600)
    wait_for(lambda: at.ear.verdicts)
    assert at.ear.verdicts[-1][1] == (0, 200, 600)
    assert at.ear.errors == []


def test_two_cameras_share_a_batch(desk):
    """Windows that are due together are one call of the model, and each camera gets its own verdict."""
    verdicts = {'/camera0': Verdict(0.25, Reason.CORRECT), '/camera1': Verdict(0.75, Reason.MISS)}
    at = desk(ScriptedModel(lambda window: verdicts[window.camera]), cameras=2)
    at.feed(0, 200, camera=0)
    at.feed(10, 210, camera=1)
    with at.worker.between_verdicts():
        at.feed(400, camera=0)
        at.feed(410, camera=1)
    wait_for(lambda: len(at.ear.verdicts) == 2)
    assert [[window.camera for window in batch] for batch in at.model.batches] == [['/camera0', '/camera1']]
    assert {topic: (stamps, verdict) for topic, stamps, verdict, _ in at.ear.verdicts} == {
        '/camera0': ((0, 200, 400), verdicts['/camera0']), '/camera1': ((10, 210, 410), verdicts['/camera1'])}
    assert (at.worker.replies, at.worker.ticks.count) == (2, 1)


@pytest.mark.parametrize('refused_by', ['decoder', 'model'])
def test_a_bad_image_of_one_camera_does_not_cost_the_other_its_reward(desk, refused_by):
    """One broken camera out of two: the other is scored in the same tick."""
    def script(window: Window) -> Verdict | Exception:
        return ImageError('image is 1x900 pixels') if window.camera == '/camera0' else GOOD

    at = desk(ScriptedModel(script if refused_by == 'model' else [GOOD]), cameras=2)
    at.feed(0, 200, camera=0)
    at.feed(0, 200, camera=1)
    with at.worker.between_verdicts():
        at.feed(400, camera=0, decode=unreadable if refused_by == 'decoder' else None)
        at.feed(400, camera=1)
    wait_for(lambda: at.ear.verdicts)
    assert [topic for topic, _, _, _ in at.ear.verdicts] == ['/camera1']
    assert [topic for topic, _ in at.ear.bad_images] == ['/camera0']
    assert at.cameras[0].undecodable == 1
    assert at.ear.errors == []


def test_the_rate_is_held(desk):
    """20 Hz asked for, frames at 200 Hz: at most 20 replies a second over two seconds, and not far fewer."""
    at = desk(rate=20.0)
    started = time.monotonic()
    stamp = 0
    while time.monotonic() - started < 2.0:
        at.feed(stamp)
        stamp += 5
        time.sleep(0.005)
    assert 30 <= len(at.ear.verdicts) <= 42
    # Half a period may be made up for after a late frame, never more.
    gaps = np.diff(at.ear.times)
    assert np.sort(gaps)[2] > 0.5 / 20.0 - 0.01


def test_a_higher_rate_takes_effect_at_once(desk):
    """From one reply in ten seconds to 50 Hz: nobody waits for the rest of the ten seconds."""
    at = desk(rate=0.1)
    at.feed(0, 200, 400)
    wait_for(lambda: at.ear.verdicts)
    at.feed(600)
    time.sleep(0.1)
    assert len(at.ear.verdicts) == 1
    at.worker.set_rate(50.0)
    wait_for(lambda: at.ear.verdicts[-1][1] == (200, 400, 600), 2.0)


def test_stop_ends_the_thread_within_the_models_reply(desk):
    """stop() interrupts a reply that would take half a minute."""
    at = desk(ScriptedModel([GOOD], delay_s=30.0))
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    started = time.monotonic()
    at.worker.stop()
    assert time.monotonic() - started < 1.0
    assert not at.worker._thread.is_alive()
    assert at.ear.verdicts == []


def test_a_model_that_never_ends_its_reply_is_an_error(desk, monkeypatch):
    """A hung GPU: stop() gives up with a clear error rather than blocking the transition for ever."""
    monkeypatch.setattr(inference, 'STOP_TIMEOUT_S', 0.3)
    at = desk()
    release = threading.Event()
    at.model.script = lambda window: release.wait(20) and GOOD
    at.feed(0, 200, 400)
    wait_for(lambda: at.model.batches)
    with pytest.raises(RuntimeError, match='did not end its reply within'):
        at.worker.stop()
    release.set()


def test_between_verdicts_holds_verdicts_back(desk):
    """Whoever changes task and detectors does so with no verdict in between."""
    at = desk()
    with at.worker.between_verdicts():
        at.feed(0, 200, 400)
        time.sleep(0.1)
        assert at.ear.verdicts == []
    wait_for(lambda: at.ear.verdicts)
