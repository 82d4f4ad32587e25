"""Running a node as a process: signals, executor, exit code."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from typing import Callable

import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from densereward_ros.ros.executor import PooledExecutor
from densereward_ros.text import one_line

# Ctrl-C ends the process within two seconds, whatever is still running then.
EXIT_DEADLINE_S = 1.5
THREADS = 4
_M_ARENA_MAX, _ARENAS = -8, 2  # of glibc's mallopt


def limit_arenas() -> None:
    """Let all threads share two memory arenas, before the first thread starts.

    glibc gives new threads arenas of their own, which keep what ended threads have freed: a node that was
    configured anew for hours grew by a hundred megabytes.
    """
    mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)  # glibc alone has it
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def run(make_node: Callable[[], Node], shut_down: Callable[[Node], None]) -> None:
    """Spin a node until SIGINT or SIGTERM, let it `shut_down`, and end the process with exit code 0.

    A ValueError of `make_node`, and arguments that ROS does not understand, are one line on the
    terminal and exit code 1. The process ends here: a thread that loads a model would keep the
    interpreter from ending by itself.
    """
    stop = threading.Event()

    def on_signal(*_: object) -> None:
        stop.set()
        deadline = threading.Timer(EXIT_DEADLINE_S, os._exit, (0,))
        deadline.daemon = True
        deadline.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    try:
        # rclpy's own handlers would invalidate the context, and then on_shutdown never runs.
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        node = make_node()
    except (ValueError, rclpy_implementation.RCLError) as error:
        print(f'{os.path.basename(sys.argv[0])}: {one_line(str(error))}', file=sys.stderr, flush=True)
        os._exit(1)
    executor = PooledExecutor(THREADS)
    executor.add_node(node)
    while not stop.is_set():
        try:
            executor.spin_once(timeout_sec=0.1)
        except rclpy_implementation.InvalidHandle:
            pass  # A subscription was destroyed between being waited for and being taken from.
        except Exception as error:
            node.get_logger().error(f'a callback failed: {one_line(repr(error))}', throttle_duration_sec=5.0)
    try:
        shut_down(node)
        executor.shutdown()
        node.destroy_node()
        # Until the last reference is gone (a lifecycle node's state machine holds one) the middleware does
        # not say goodbye, and others see this node, and wait for its services, for 20 seconds more.
        del node, executor
        gc.collect()
        rclpy.try_shutdown()
    except Exception as error:  # what a transition in flight does to this must not cost the exit code
        get_logger('rclpy').warning(f'ended without an orderly shutdown: {one_line(repr(error))}')
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
