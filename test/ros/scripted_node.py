"""The reward node's own main() with a scripted model and without torch, so that a process starts in a second.

The first argument is JSON: import_s and load_s (seconds that importing and loading take), busy (whether
loading computes rather than waits), verdicts (reward, reason, and probabilities or null;
the red value of the newest image's first pixel says which).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / 'helpers'))

from densereward_ros.ros import reward_node, start  # noqa: E402
from densereward_ros.types import Reason, Verdict  # noqa: E402
from ros_bench import ScriptedModel  # noqa: E402

SCRIPT = json.loads(sys.argv.pop(1))


def open_model(options, progress) -> ScriptedModel:
    """Takes the place of the real one."""
    progress('loading')
    deadline = time.monotonic() + SCRIPT.get('load_s', 0.0)
    while time.monotonic() < deadline:
        if SCRIPT.get('busy'):
            sum(range(1000))
        else:
            time.sleep(0.01)
    verdicts = [
        Verdict(reward, Reason(reason), reason_probabilities=probabilities and tuple(probabilities))
        for reward, reason, probabilities in SCRIPT.get('verdicts', ())]
    if verdicts:
        return ScriptedModel(lambda window: verdicts[window.newest.image[0, 0, 0]], delay_s=0.01)
    return ScriptedModel()


reward_node.open_model = open_model
start.preload = lambda: time.sleep(SCRIPT.get('import_s', 0.0))
start.main()
