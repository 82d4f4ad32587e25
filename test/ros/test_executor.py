"""The executor: every callback once, errors told, and the processor left to those who compute."""

from __future__ import annotations

import threading
import time

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from densereward_ros.ros.executor import PooledExecutor
from ros_bench import wait_for


@pytest.fixture
def node(client):
    """A node and its executor, which spins on a thread of its own; errors are what spin_once raised."""
    node = Node('spun', context=client.node.context)
    node.errors = []
    executor = PooledExecutor(2, context=client.node.context)
    executor.add_node(node)
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            try:
                executor.spin_once(timeout_sec=0.05)
            except ValueError as error:
                node.errors.append(error)

    thread = threading.Thread(target=spin)
    thread.start()
    yield node
    stop.set()
    thread.join()
    executor.shutdown()
    node.destroy_node()


def test_a_callback_is_offered_once_while_another_thread_computes(node, client, monkeypatch):
    """rclpy's own executor offers it hundreds of times then, and the one that computes waits for it."""
    offered = []
    wait = PooledExecutor.wait_for_ready_callbacks

    def count(self, *arguments):
        ready = wait(self, *arguments)
        offered.append(ready)
        return ready

    monkeypatch.setattr(PooledExecutor, 'wait_for_ready_callbacks', count)
    heard = []
    node.create_subscription(String, 'words', heard.append, 10)
    publisher = client.speak(String, 'words')
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            sum(range(1000))

    computing = threading.Thread(target=compute)
    computing.start()
    try:
        for word in map(str, range(50)):
            publisher.publish(String(data=word))
            wait_for(lambda word=word: heard and heard[-1].data == word)
    finally:
        done.set()
        computing.join()
    assert [message.data for message in heard] == [str(n) for n in range(50)]
    assert len(offered) <= 75  # now and then once more, between its start and its first step


def test_what_a_callback_raises_is_raised_and_the_next_one_runs(node, client):
    """Nothing is swallowed, and nothing stops."""
    heard = []

    def hear(message: String) -> None:
        heard.append(message.data)
        if message.data == 'bad':
            raise ValueError('a bad word')

    node.create_subscription(String, 'words', hear, 10)
    publisher = client.speak(String, 'words')
    for word in ('good', 'bad', 'better'):
        publisher.publish(String(data=word))
    wait_for(lambda: len(heard) == 3 and node.errors)
    assert [str(error) for error in node.errors] == ['a bad word']


def test_a_callback_that_takes_long_holds_up_no_other(node, client):
    """Loading a model takes minutes, and get_state must be answered meanwhile."""
    release, heard = threading.Event(), []
    group = ReentrantCallbackGroup()
    node.create_subscription(String, 'slow', lambda _: release.wait(10), 10, callback_group=group)
    node.create_subscription(String, 'quick', lambda message: heard.append(time.monotonic()), 10)
    slow, quick = client.speak(String, 'slow'), client.speak(String, 'quick')
    slow.publish(String())
    time.sleep(0.1)
    started = time.monotonic()
    quick.publish(String())
    wait_for(lambda: heard)
    release.set()
    assert heard[0] - started < 0.2
