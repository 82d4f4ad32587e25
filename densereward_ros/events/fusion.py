"""Several cameras, one stream of events: when does what one of them sees count?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Sequence

from densereward_ros.events.detector import EpisodeState, FailureDetector
from densereward_ros.events.settings import DEFAULTS, DetectorSettings
from densereward_ros.types import FailureEvent, Reason, Verdict, Window

NS_PER_S = 1_000_000_000
FUSIONS = ('any', 'majority', 'primary')


def check_fusion(cameras: Sequence[str], fusion: str, primary: str) -> None:
    """Raise ValueError, one line, for a fusion that these cameras cannot have."""
    if fusion not in FUSIONS:
        raise ValueError(f'fusion is {fusion!r}, allowed: {", ".join(FUSIONS)}')
    if fusion == 'primary' and primary not in cameras:
        raise ValueError(f'primary_camera is {primary!r}, allowed: {", ".join(cameras)}')


class FusedDetector:
    """A FailureDetector for each camera, and the rule by which they agree.

    any: what one camera sees is a failure. Fewest misses, and the false alarms of all cameras add up.
    majority: more than half of the cameras must see a failure at the same time, whatever they call it.
    primary: one camera decides, and the others only give rewards.

    A failure is told once: while it stands, a camera that sees it too adds no event, and neither does one
    that names the same reason within the cool-down. What only a minority sees waits, and is told when the
    majority joins it, by the reason that most of them name.

    Clocks of different cameras are never compared: cameras vote with what their last verdict left standing,
    and each measures the cool-down by its own stamps.
    """

    def __init__(
        self,
        cameras: Sequence[str],
        settings: DetectorSettings = DEFAULTS,
        fusion: str = 'any',
        primary: str = '',
    ) -> None:
        """primary: one of the cameras; of no effect on the other fusions. Raises ValueError."""
        check_fusion(cameras, fusion, primary)
        self._voters = (primary,) if fusion == 'primary' else tuple(cameras)
        self._needed = len(cameras) // 2 + 1 if fusion == 'majority' else 1
        self._detectors = {camera: FailureDetector(settings) for camera in self._voters}
        self.reset()

    @property
    def settings(self) -> DetectorSettings:
        """Those of every camera; may be replaced at any time."""
        return self._detectors[self._voters[0]].settings

    @settings.setter
    def settings(self, settings: DetectorSettings) -> None:
        for detector in self._detectors.values():
            detector.settings = settings

    def reset(self) -> None:
        """Forget everything: a new episode."""
        for detector in self._detectors.values():
            detector.reset()
        self._newest_ns: dict[str, int] = {}
        self._waiting: dict[str, FailureEvent] = {}  # by camera: seen, and not told yet
        self._told_by: set[str] = set()  # the cameras that see the failure that was told and stands
        self._told_ns: dict[Reason, dict[str, int]] = {}  # by reason: every camera's stamp at its last event

    @property
    def state(self) -> EpisodeState:
        """The first of failing, succeeded and stalled that enough cameras agree on; running otherwise."""
        states = [detector.state for detector in self._detectors.values()]
        for state in (EpisodeState.FAILING, EpisodeState.SUCCEEDED, EpisodeState.STALLED):
            if states.count(state) >= self._needed:
                return state
        seen = any(state is not EpisodeState.UNKNOWN for state in states)
        return EpisodeState.RUNNING if seen else EpisodeState.UNKNOWN

    def update(self, window: Window, verdict: Verdict) -> FailureEvent | None:
        """Take in the next verdict of one of the cameras; returns the event that it completes, if any."""
        detector = self._detectors.get(window.camera)
        if detector is None:
            return None
        self._newest_ns[window.camera] = window.newest.stamp_ns
        event = detector.update(window, verdict)
        failing = [
            camera for camera in self._voters if self._detectors[camera].state is EpisodeState.FAILING]
        if event is not None:
            self._waiting[window.camera] = event
        for camera in set(self._waiting) - set(failing):
            del self._waiting[camera]
        if len(failing) < self._needed:
            self._told_by.clear()
            return None
        return self._agree(failing)

    def _agree(self, failing: Sequence[str]) -> FailureEvent | None:
        """Tell of what waits, unless it is the failure that was told already."""
        waiting, self._waiting = self._waiting, {}
        news = [
            event for camera, event in waiting.items()
            if not self._cooling_down(event.reason, camera)
            and (not self._told_by or camera in self._told_by)]
        self._told_by |= set(waiting)
        if not news:
            return None
        reason, _ = Counter(event.reason for event in reversed(news)).most_common(1)[0]
        last = [event for event in news if event.reason is reason][-1]
        self._told_ns[reason] = dict(self._newest_ns)
        return replace(last, cameras=tuple(failing))

    def _cooling_down(self, reason: Reason, camera: str) -> bool:
        told_ns = self._told_ns.get(reason, {}).get(camera)
        return told_ns is not None and (
            0 <= self._newest_ns[camera] - told_ns < self.settings.cooldown * NS_PER_S)
