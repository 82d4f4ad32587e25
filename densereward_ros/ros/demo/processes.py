"""The processes of the demo: one table for the demo's own runner and for demo.launch.py."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

# Its own namespace, so that no robot's controller hears the demo's events on the usual topics.
NAMESPACE = '/densereward_demo'
TABLETOP = 'tabletop'
# Ends well and ends badly in turn: a viewer sees each kind of failure, and what success looks like after it.
MISHAPS = ('miss', 'fall', 'collision', 'failure', 'smooth')


@dataclass(frozen=True)
class DemoProcess:
    """One node of the demo: its executable (the node has the same name), parameters and remappings."""

    executable: str
    parameters: dict[str, Any] = field(default_factory=dict)
    remappings: dict[str, str] = field(default_factory=dict)

    def ros_arguments(self) -> list[str]:
        """The command-line arguments that give a node all this."""
        arguments = ['--ros-args', '-r', f'__ns:={NAMESPACE}']
        for name, target in self.remappings.items():
            arguments += ['-r', f'{name}:={target}']
        for name, value in self.parameters.items():
            # JSON is YAML that leaves no text to be read as a number or a truth value; but its escapes
            # of characters beyond 16 bits are not.
            arguments += ['-p', f'{name}:={json.dumps(value, ensure_ascii=False)}']
        return arguments


def demo_processes(source: str, task: str, subscribers: int) -> list[DemoProcess]:
    """The nodes of a demo of the simulated robot (source TABLETOP) or of a recording.

    task: what a recording shows; the simulated robot chooses its own. subscribers: how many
    subscribers of the camera the first frame waits for, so that none of them misses it.
    """
    simulated = source == TABLETOP
    camera = {
        'source': source,
        'topic': 'camera/image_raw',
        # Recordings come in every size, and large raw images do not pass DDS at full rate.
        'compressed': not simulated,
        'wait_for_subscribers': subscribers,
        **({'loop': True, 'mishaps': list(MISHAPS)} if simulated else {}),
    }
    reward = {
        'model': TABLETOP,
        'image_topics': ['camera/image_raw' if simulated else 'camera/image_raw/compressed'],
        'autostart': True,
        **({} if simulated else {'task': task}),
    }
    processes = [
        DemoProcess('reward_node', reward),
        # The simulated robot tells the reward node what it is about to do.
        DemoProcess('camera_player', camera, {'~/task': 'reward_node/task'} if simulated else {}),
    ]
    if simulated:
        processes.append(DemoProcess(
            'recovery_node', {'cancel_action': 'camera_player/work'}, {'recover': 'camera_player/recover'}))
    return processes
