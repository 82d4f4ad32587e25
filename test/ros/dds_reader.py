"""A DDS program that knows nothing of ROS: prints /reward and /failure_event, read with Cyclone DDS.

Its types are written by hand from the .msg files, as a user of another DDS stack would do.
Prints one JSON line a message. Arguments: the DDS domain and the seconds to listen.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, int32, sequence, uint8, uint32, uint64
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

# On the loopback device only, whatever networks this machine has; without multicast, which it may lack.
CONFIGURATION = """
<General>
  <Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>
  <AllowMulticast>false</AllowMulticast>
</General>
<Discovery>
  <ParticipantIndex>auto</ParticipantIndex>
  <MaxAutoParticipantIndex>100</MaxAutoParticipantIndex>
  <Peers><Peer address="127.0.0.1"/></Peers>
</Discovery>
"""


@dataclass
class Time(IdlStruct, typename='builtin_interfaces::msg::dds_::Time_'):
    """As builtin_interfaces/Time."""

    sec: int32
    nanosec: uint32


@dataclass
class Duration(IdlStruct, typename='builtin_interfaces::msg::dds_::Duration_'):
    """As builtin_interfaces/Duration."""

    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename='std_msgs::msg::dds_::Header_'):
    """As std_msgs/Header."""

    stamp: Time
    frame_id: str


@dataclass
class RewardStamped(IdlStruct, typename='densereward_ros::msg::dds_::RewardStamped_'):
    """As msg/RewardStamped.msg."""

    header: Header
    camera: str
    task: str
    reward: float32
    bounded: bool
    reason: uint8
    reason_probabilities: array[float32, 6]
    frame_stamps: array[Time, 3]
    inference_time: Duration
    model: str


@dataclass
class FailureEvent(IdlStruct, typename='densereward_ros::msg::dds_::FailureEvent_'):
    """As msg/FailureEvent.msg."""

    header: Header
    cameras: sequence[str]
    task: str
    reason: uint8
    rule: uint8
    reward: float32
    previous_reward: float32
    probability: float32
    confirmations: uint32
    sequence: uint64


def main() -> None:
    """Print each message as one line: its topic and its fields."""
    number, seconds = int(sys.argv[1]), float(sys.argv[2])
    domain = Domain(number, CONFIGURATION)
    participant = DomainParticipant(number)
    qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(100))
    readers = {
        name: DataReader(participant, Topic(participant, f'rt/{name}', kind), qos)
        for name, kind in (('reward', RewardStamped), ('failure_event', FailureEvent))}
    print('listening', flush=True)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for name, reader in readers.items():
            for sample in reader.take(10):
                print(json.dumps([name, asdict(sample)]), flush=True)
        time.sleep(0.01)
    del domain


main()
