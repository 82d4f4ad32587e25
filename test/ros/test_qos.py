"""Quality of service: overrides by parameters, the deadline of /reward, and what is said of a mismatch."""

from __future__ import annotations

import time

import pytest
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from sensor_msgs.msg import Image

from densereward_ros.msg import RewardStamped
from densereward_ros.ros.parameters import ParameterError
from densereward_ros.ros.publications import EVENTS_QOS, LATCHED_QOS
from densereward_ros.ros.qos import SubscriptionEventCallbacks
from densereward_ros.ros.subscriptions import CAMERA_QOS
from ros_bench import NS_PER_S, TOPIC, wait_for

RELIABLE, BEST_EFFORT = QoSReliabilityPolicy.RELIABLE, QoSReliabilityPolicy.BEST_EFFORT
CAMERA = f'qos_overrides.{TOPIC}.subscription'


@pytest.fixture(autouse=True)
def alone(client) -> None:
    """Nodes that an earlier test has killed stay in the graph for some 20 seconds."""
    wait_for(lambda: not client.node.count_publishers('/reward'), what='an end of earlier publishers')


def offered(here, topic: str) -> QoSProfile:
    """What the node's publisher offers."""
    info, = here.node.get_publishers_info_by_topic(topic)
    return info.qos_profile


def test_parameters_override_what_is_published_and_subscribed(start_node, client):
    """The standard names; the profiles that the nodes of one process share stay as they are."""
    here = start_node(**{
        'qos_overrides./reward.publisher.reliability': 'best_effort',
        'qos_overrides./failure_event.publisher.durability': 'transient_local',
        'qos_overrides./reward_node/episode_state.publisher.durability': 'volatile',
        f'{CAMERA}.reliability': 'reliable',
        f'{CAMERA}.deadline': 2 * NS_PER_S,
    })
    assert client.transition('configure')
    assert offered(here, '/reward').reliability == BEST_EFFORT
    assert offered(here, '/failure_event').durability == QoSDurabilityPolicy.TRANSIENT_LOCAL
    assert offered(here, '/failure_event/miss').durability == QoSDurabilityPolicy.VOLATILE
    assert offered(here, '/reward_node/episode_state').durability == QoSDurabilityPolicy.VOLATILE
    info, = here.node.get_subscriptions_info_by_topic(TOPIC)
    assert info.qos_profile.reliability == RELIABLE
    assert info.qos_profile.deadline.nanoseconds == 2 * NS_PER_S
    assert here.node.get_parameter(f'{CAMERA}.depth').value == 1
    assert (CAMERA_QOS.reliability, EVENTS_QOS.reliability) == (BEST_EFFORT, RELIABLE)
    assert LATCHED_QOS.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL


def test_overrides_last_over_a_second_configure(start_node, client):
    """Parameters that exist already are read again, not declared again."""
    here = start_node(**{'qos_overrides./reward.publisher.reliability': 'best_effort'})
    for _ in range(2):
        assert client.transition('configure')
        assert offered(here, '/reward').reliability == BEST_EFFORT
        assert client.transition('cleanup')


@pytest.mark.parametrize(('name', 'value', 'words'), [
    ('reliability', 'sometimes', 'Unexpected QoS override for policy `reliability`: `sometimes`'),
    ('depth', 'many', '/reward.publisher.depth'),
])
def test_a_wrong_override_leaves_the_node_unconfigured_with_one_line(
        start_node, client, log, name, value, words):
    """The topic, the policy and the value are named; nothing stays on the node."""
    here = start_node(**{f'qos_overrides./reward.publisher.{name}': value})
    assert not client.transition('configure')
    line, = log('ERROR')
    assert line.startswith('on_configure failed: parameters qos_overrides./reward: ')
    assert words in line
    assert here.node.count_publishers('/reward') == 0


def test_a_wrong_override_of_the_latched_state_is_refused_at_start(start_node):
    """One line instead of a traceback, as for every other parameter."""
    refusal = '^parameters qos_overrides./reward_node/episode_state: .*`always`'
    with pytest.raises(ParameterError, match=refusal):
        start_node(**{'qos_overrides./reward_node/episode_state.publisher.durability': 'always'})


def test_rewards_offer_a_deadline_of_three_periods_of_the_rate_at_configure(start_node, client):
    """And of the new rate after another configure; other topics offer none."""
    here = start_node(rate=5.0)
    assert client.transition('configure')
    assert offered(here, '/reward').deadline.nanoseconds == pytest.approx(0.6 * NS_PER_S)
    assert offered(here, '/failure_event').deadline.nanoseconds > 1e18
    assert client.transition('cleanup')
    here.node.set_parameters([Parameter('rate', value=10.0)])
    assert client.transition('configure')
    assert offered(here, '/reward').deadline.nanoseconds == pytest.approx(0.3 * NS_PER_S)


def test_an_overridden_deadline_wins(start_node, client):
    """For controllers that want another one."""
    here = start_node(**{'qos_overrides./reward.publisher.deadline': 2 * NS_PER_S})
    assert client.transition('configure')
    assert offered(here, '/reward').deadline.nanoseconds == 2 * NS_PER_S


def test_dds_tells_a_subscriber_that_the_rewards_have_stopped(start_node, client):
    """Not while they come, and again and again once the camera is silent; plain subscribers get them all."""
    here = start_node(rate=5.0)
    assert client.transition('configure')
    assert client.transition('activate')
    plain, heard, missed = client.listen(RewardStamped, '/reward'), [], []
    client._subscriptions.append(client.node.create_subscription(
        RewardStamped, '/reward', heard.append, QoSProfile(depth=10, deadline=Duration(seconds=0.6)),
        event_callbacks=SubscriptionEventCallbacks(deadline=missed.append)))
    camera = here.camera(client)
    stamp_ns = 100 * NS_PER_S
    while len(heard) < 6:
        stamp_ns += NS_PER_S // 10
        camera.send(stamp_ns)
        time.sleep(0.1)
    assert missed == []
    wait_for(lambda: len(missed) >= 2, 5.0)
    assert [reward.header for reward in heard] == [reward.header for reward in plain[-len(heard):]]


def test_a_camera_that_offers_too_little_is_told_once_with_the_fix(start_node, client, log):
    """Two best-effort cameras, and a user who asked for reliable images."""
    here = start_node(**{f'{CAMERA}.reliability': 'reliable'})
    assert client.transition('configure')
    best_effort = QoSProfile(depth=5, reliability=BEST_EFFORT)
    for _ in range(2):
        client._publishers.append(client.node.create_publisher(Image, TOPIC, best_effort))
        time.sleep(0.3)
    line, = log('WARN')
    assert line == (
        f'{TOPIC}: a publisher offers less reliability than this node asks for, and nothing arrives from it: '
        f'set {CAMERA}.reliability to what it offers')
    assert here.errors == []


def test_a_subscriber_that_asks_for_too_much_is_told_once_with_the_fix(start_node, client, log):
    """A deadline shorter than three periods: that subscriber gets nothing, and the log says why."""
    here = start_node(rate=5.0)
    assert client.transition('configure')
    for _ in range(2):
        client._subscriptions.append(client.node.create_subscription(
            RewardStamped, '/reward', print, QoSProfile(depth=10, deadline=Duration(seconds=0.2))))
        time.sleep(0.3)
    line, = log('WARN')
    assert line == (
        '/reward: a subscriber asks for more deadline than this node offers, and gets nothing: change the '
        'subscriber, or set qos_overrides./reward.publisher.deadline')
    assert here.errors == []
