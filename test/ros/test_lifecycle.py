"""The lifecycle: every transition in every state, failures and errors on the way, and nothing left behind."""

from __future__ import annotations

import errno
import random
import threading
import time
from dataclasses import asdict

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from sensor_msgs.msg import Image

from densereward_ros import msg
from densereward_ros.models.base import ModelError, ModelOptions
from densereward_ros.ros.monitor import Monitor
from ros_bench import TASK, TOPIC, FakeCamera, ScriptedModel, wait_for

WAY_TO = {
    'unconfigured': [],
    'inactive': ['configure'],
    'active': ['configure', 'activate'],
    'finalized': ['shutdown'],
}
LEGAL = {
    ('unconfigured', 'configure'): 'inactive',
    ('unconfigured', 'shutdown'): 'finalized',
    ('inactive', 'activate'): 'active',
    ('inactive', 'cleanup'): 'unconfigured',
    ('inactive', 'shutdown'): 'finalized',
    ('active', 'deactivate'): 'inactive',
    ('active', 'shutdown'): 'finalized',
}


def entities(here) -> dict[str, object]:
    """What a node holds and what runs in this process."""
    node = here.node
    return {
        'publishers': sorted(publisher.topic_name for publisher in node.publishers),
        'subscriptions': sorted(subscription.topic_name for subscription in node.subscriptions),
        'timers': len(list(node.timers)),
        'services': sorted(service.service_name for service in node.services),
        'managed': len(node._managed_entities),
        'waitables': len(list(node.waitables)),
        'threads': [thread.name for thread in threading.enumerate() if thread.name == 'inference'],
    }


def own_threads() -> list[str]:
    """The threads of this process, without those that the executor's pool starts when it first needs them."""
    names = [thread.name for thread in threading.enumerate()]
    return sorted(name for name in names if not name.startswith('callback_'))


def walk(client, *transitions: str) -> None:
    """Transitions that all succeed."""
    for name in transitions:
        assert client.transition(name), name


@pytest.mark.parametrize('state', WAY_TO)
@pytest.mark.parametrize('transition', ['configure', 'activate', 'deactivate', 'cleanup', 'shutdown'])
def test_every_transition_in_every_state(start_node, client, state, transition):
    """Legal ones lead where the ROS 2 design says; illegal ones are refused and change nothing."""
    here = start_node()
    walk(client, *WAY_TO[state])
    assert client.state() == state
    before = entities(here)
    goal = LEGAL.get((state, transition))
    assert client.transition(transition) is (goal is not None)
    assert client.state() == (goal or state)
    if goal is None:
        assert entities(here) == before
    assert here.errors == []


@pytest.mark.parametrize('state', ['unconfigured', 'inactive', 'active'])
def test_shutdown_leaves_nothing(start_node, client, state):
    """From each state: model closed, no thread, and only what the unconfigured node had."""
    model = ScriptedModel()
    here = start_node(model)
    bare = entities(here)
    walk(client, *WAY_TO[state], 'shutdown')
    assert entities(here) == bare
    assert model.closed is (state != 'unconfigured')


def test_what_a_configured_node_has(start_node, client):
    """Its topics by name; all of them are gone again after cleanup."""
    here = start_node(image_topics=['/left/image_raw', 'right/compressed'])
    bare = entities(here)
    walk(client, 'configure')
    configured = entities(here)
    assert sorted(set(configured['publishers']) - set(bare['publishers'])) == [
        '/failure_event', '/failure_event/collision', '/failure_event/failure', '/failure_event/fall',
        '/failure_event/miss', '/failure_event/smooth', '/reward', '/reward/value',
        '/reward_node/debug_image/compressed']
    assert sorted(set(configured['subscriptions']) - set(bare['subscriptions'])) == [
        '/left/image_raw', '/right/compressed']
    assert configured['threads'] == ['inference']
    walk(client, 'cleanup')
    assert entities(here) == bare


def test_a_model_that_is_not_found_leaves_the_node_unconfigured_and_says_why(start_node, client, log):
    """Log and diagnostics carry the cause in one line; with a model that is there configure then works."""
    models = [ModelError('/models/typo: no such folder'), ScriptedModel()]

    def open_model(options, progress):
        model = models.pop(0)
        if isinstance(model, Exception):
            raise model
        return model

    here = start_node(open_model)
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    bare = entities(here)
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    assert entities(here) == bare
    line = 'on_configure failed: /models/typo: no such folder'
    assert log('ERROR') == [line]
    wait_for(lambda: (DiagnosticStatus.ERROR, line) in [
        (status.level, status.message) for array in diagnostics for status in array.status])
    walk(client, 'configure', 'activate')
    del diagnostics[:]
    wait_for(lambda: any(
        status.name == 'reward_node' and status.message == 'active'
        for array in diagnostics for status in array.status))


def test_a_disk_that_is_gone_leads_through_the_error_transition_and_back(start_node, client, log):
    """Nobody foresaw it, so a traceback says where; with the disk back the node is configured as ever."""
    disk = [OSError(errno.EIO, 'Input/output error', '/models/mine\n[FATAL] fake')]

    def open_model(options, progress):
        if disk:
            raise disk.pop()
        return ScriptedModel()

    here = start_node(open_model)
    bare = entities(here)
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    assert entities(here) == bare
    line, where = log('ERROR')
    assert line.startswith('on_configure failed: OSError(5, ')
    assert where.startswith('Traceback')
    assert '[FATAL] fake' not in where
    walk(client, 'configure', 'cleanup', 'configure', 'activate')


def test_a_hub_that_cannot_be_reached_is_one_line(start_node, client, log, monkeypatch, tmp_path):
    """With the real hub client: the node stays unconfigured, and another configure works."""
    from huggingface_hub import constants

    from densereward_ros.models.opening import open_model

    endpoint = 'http://127.0.0.1:9'
    monkeypatch.setattr(constants, 'ENDPOINT', endpoint)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path))
    models = [open_model, lambda *_: ScriptedModel()]
    start_node(lambda *arguments: models.pop(0)(*arguments), model='owner/model')
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    line, = log('ERROR')
    assert line.startswith(f'on_configure failed: cannot reach {endpoint} for owner/model')
    walk(client, 'configure')


@pytest.mark.parametrize(('topics', 'words'), [
    (['/camera//image'], "'/camera//image'"),
    (['/camera/'], "'/camera/'"),
    (['camera image'], "'camera image'"),
    ([''], "''"),
    (['/9camera'], "'/9camera'"),
    (['/a', '/{nothing}/b'], "'/{nothing}/b'"),
    (['/a', 'a'], 'names /a twice'),
])
def test_a_wrong_topic_name_is_one_line(start_node, client, log, topics, words):
    """Found before a model is loaded; the name is in the line, whatever is wrong with it."""
    opened = []
    here = start_node(lambda *_: opened.append(1), image_topics=topics)
    bare = entities(here)
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    assert opened == []
    assert entities(here) == bare
    line, = log('ERROR')
    assert line.startswith('on_configure failed: parameter image_topics')
    assert words in line
    assert '\n' not in line


def test_a_topic_of_another_type_leaves_nothing_behind(start_node, client):
    """/diagnostics is no camera: the middleware refuses the subscription when the model is loaded already."""
    model = ScriptedModel()
    here = start_node(model, image_topics=['/fine', '/diagnostics'])
    bare = entities(here)
    assert not client.transition('configure')
    assert client.state() == 'unconfigured'
    assert entities(here) == bare
    assert model.closed


@pytest.mark.parametrize(('way', 'transition', 'method'), [
    ([], 'configure', None),
    (['configure'], 'activate', 'activate'),
    (['configure', 'activate'], 'deactivate', 'worker.pause'),
    (['configure'], 'cleanup', 'close'),
])
def test_an_exception_in_a_transition_is_logged_and_the_node_can_be_configured_again(
        start_node, client, log, monkeypatch, way, transition, method):
    """Through the error transition to unconfigured; rclpy alone would swallow the cause."""
    broken = [True]

    def raise_once(*_):
        if broken:
            broken.clear()
            raise RuntimeError('CUDA error: device-side assert triggered')

    def open_model(options, progress):
        if transition == 'configure':
            raise_once()
        return ScriptedModel()

    here = start_node(open_model)
    bare = entities(here)
    walk(client, *way)
    if method == 'worker.pause':
        pause = here.node._monitor.worker.pause
        monkeypatch.setattr(here.node._monitor.worker, 'pause', lambda: (raise_once(), pause()))
    elif method:
        work = getattr(Monitor, method)
        monkeypatch.setattr(Monitor, method, lambda self, *a: (work(self, *a), raise_once()))
    assert not client.transition(transition)
    assert client.state() == 'unconfigured'
    assert entities(here) == bare
    line, traceback = log('ERROR')
    assert line == f"on_{transition} failed: RuntimeError('CUDA error: device-side assert triggered')"
    assert traceback.startswith('Traceback')
    walk(client, 'configure', 'activate')
    camera, rewards = FakeCamera(client), client.listen(msg.RewardStamped, '/reward')
    camera.stream(5)
    wait_for(lambda: rewards)


def test_get_state_is_answered_while_the_model_loads(start_node, client):
    """Nav2's manager gives a service 5 s; here it never waits longer than 0.2 s during a 2 s configure."""
    here = start_node(lambda *_: time.sleep(2.0) or ScriptedModel())
    assert client.state() == 'unconfigured'
    request = ChangeState.Request(transition=Transition(label='configure'))
    configured = client.call_async(ChangeState, '/reward_node/change_state', request)
    wait_for(lambda: here.node._state == 'configuring')
    seen, waits = [], []
    while not configured.done():
        started = time.monotonic()
        seen.append(client.call(GetState, '/reward_node/get_state', GetState.Request()).current_state.label)
        waits.append(time.monotonic() - started)
        time.sleep(0.02)
    assert configured.result().success
    assert len(waits) > 20
    assert max(waits) < 0.2
    assert set(seen[:-2]) == {'configuring'}
    assert client.state() == 'inactive'


def test_a_second_configure_while_the_model_loads_is_refused(start_node, client):
    """Two managers, or an impatient user: the model is loaded once."""
    opened = []
    here = start_node(lambda *_: opened.append(1) or time.sleep(0.5) or ScriptedModel())
    request = ChangeState.Request(transition=Transition(label='configure'))
    first = client.call_async(ChangeState, '/reward_node/change_state', request)
    wait_for(lambda: here.node._state == 'configuring')
    assert not client.transition('configure')
    wait_for(first.done)
    assert first.result().success
    assert opened == [1]
    assert client.state() == 'inactive'


def test_progress_shows_in_log_and_diagnostics_while_the_model_loads(start_node, client, log):
    """A download of minutes must not look frozen; its warnings are warnings."""
    def open_model(options, progress):
        progress('warning: the system prompt differs')
        progress('downloading: 40% of 9.2 GB')
        time.sleep(2.5)
        return ScriptedModel()

    start_node(open_model)
    diagnostics = client.listen(DiagnosticArray, '/diagnostics')
    walk(client, 'configure')
    messages = [
        status.message for array in diagnostics for status in array.status if status.name == 'reward_node']
    assert 'downloading: 40% of 9.2 GB' in messages
    assert 'downloading: 40% of 9.2 GB' in log('INFO')
    assert log('WARN') == ['the system prompt differs']


def test_the_parameters_reach_the_model(start_node, client):
    """Each of the model's parameters, under its name."""
    seen = []
    wanted = ModelOptions(
        model='/models/mine', revision='v2', device='cuda:1', dtype='float16', max_new_tokens=64,
        engine='reference', constrain=False, max_pixels=500_000, quantization='int8', gpu_memory=8.0,
        cuda_graphs=True)
    values = {'model_revision' if name == 'revision' else name: v for name, v in asdict(wanted).items()}
    start_node(lambda options, progress: seen.append(options) or ScriptedModel(), **values)
    walk(client, 'configure')
    assert seen == [wanted]


def test_after_deactivate_nothing_is_published(start_node, client):
    """Also not the reply that was under way; and the same node scores again after activate."""
    model = ScriptedModel(delay_s=0.5)
    start_node(model)
    walk(client, 'configure', 'activate')
    camera, rewards = FakeCamera(client), client.listen(msg.RewardStamped, '/reward')
    camera.stream(4)
    wait_for(lambda: model.batches)
    walk(client, 'deactivate')
    camera.stream(10, start_ns=200_000_000_000)
    time.sleep(0.6)
    assert rewards == []
    assert len(model.batches) == 1
    walk(client, 'activate')
    stamps = camera.stream(3, start_ns=300_000_000_000)
    wait_for(lambda: rewards)
    assert [stamp.sec for stamp in rewards[0].frame_stamps] == [ns // 10**9 for ns in stamps]


def test_no_window_reaches_back_behind_an_activation(start_node, client):
    """Frames of before are of another attempt: the first window after activate is of new frames only."""
    model = ScriptedModel()
    start_node(model)
    walk(client, 'configure', 'activate')
    camera = FakeCamera(client)
    camera.stream(2)
    time.sleep(0.2)
    walk(client, 'deactivate', 'activate')
    camera.send(100_400_000_000)
    time.sleep(0.3)
    assert model.batches == []


@pytest.mark.slow
def test_two_hundred_cycles_leave_nothing_behind(start_node, client):
    """With images arriving all the while: no thread, publisher, subscription or timer more than before."""
    models = []
    here = start_node(lambda *_: models.append(ScriptedModel()) or models[-1])
    walk(client, 'configure', 'activate', 'deactivate', 'cleanup')
    bare, threads = entities(here), own_threads()
    stop = threading.Event()
    publisher = client.node.create_publisher(Image, TOPIC, 1)

    def film() -> None:
        stamp_ns = 0
        while not stop.wait(0.004):
            stamp_ns += 4_000_000
            publisher.publish(FakeCamera.picture(stamp_ns))

    filming = threading.Thread(target=film)
    filming.start()
    try:
        for _ in range(200):
            walk(client, 'configure', 'activate', 'deactivate', 'cleanup')
    finally:
        stop.set()
        filming.join()
        client.node.destroy_publisher(publisher)
    assert entities(here) == bare
    assert own_threads() == threads
    assert len(models) == 201
    assert all(model.closed for model in models)
    assert here.errors == []


@pytest.mark.slow
def test_managers_that_fight_leave_a_node_that_works(start_node, client):
    """Transitions from four sides in any order, for three seconds; afterwards the node does its work."""
    here = start_node(lambda *_: ScriptedModel(delay_s=0.01))
    names = ['configure', 'activate', 'deactivate', 'cleanup']
    deadline = time.monotonic() + 3.0

    def fight(seed: int) -> None:
        choice = random.Random(seed)
        while time.monotonic() < deadline:
            getattr(here.node, f'trigger_{choice.choice(names)}')()

    threads = [threading.Thread(target=fight, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = client.state()
    assert state in ('unconfigured', 'inactive', 'active')
    walk(client, *{'unconfigured': [], 'inactive': ['cleanup'], 'active': ['deactivate', 'cleanup']}[state])
    assert entities(here)['threads'] == []
    walk(client, 'configure', 'activate')
    camera, rewards = FakeCamera(client), client.listen(msg.RewardStamped, '/reward')
    camera.stream(5)
    wait_for(lambda: rewards)
    assert here.errors == []


def test_autostart_configures_and_activates(start_node, client):
    """Without a lifecycle manager the node gets going by itself, once."""
    opened = []
    start_node(lambda *_: opened.append(1) or ScriptedModel(), autostart=True)
    wait_for(lambda: client.state() == 'active')
    walk(client, 'deactivate', 'cleanup')
    time.sleep(0.3)
    assert client.state() == 'unconfigured'
    assert opened == [1]


def test_autostart_with_a_model_that_is_not_there_stays_unconfigured(start_node, client, log):
    """One error line, and the node waits for a configure with another model."""
    def open_model(options, progress):
        raise ModelError('/models/typo: no such folder')

    here = start_node(open_model, autostart=True)
    wait_for(lambda: here.node._last_error)
    time.sleep(0.3)
    assert log('ERROR') == ['on_configure failed: /models/typo: no such folder']
    assert client.state() == 'unconfigured'


@pytest.mark.parametrize('task', ['', TASK])
def test_activate_says_once_whether_there_is_a_task(start_node, client, log, task):
    """With none the node is active and idle, and says what to do."""
    start_node(task=task)
    walk(client, 'configure', 'activate')
    camera = FakeCamera(client)
    camera.stream(5)
    time.sleep(0.1)
    assert [line for line in log('INFO') if line.startswith('active')] == [
        f'active: task "{task}"' if task else
        'active, but idle: no task; set the parameter task, or publish on ~/task']
