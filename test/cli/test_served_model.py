"""Verbs that open a model, with one on a server: its options, and a server that is away in the middle."""

from __future__ import annotations

import json
import threading

import pytest

from clips import write_images
from completion_stub import CompletionStub, message
from densereward_ros.cli import main
from densereward_ros.models.server_address import KEY_VARIABLE
from densereward_ros.results.folder import read_results

TASK = 'put the red block on the blue plate'
FRAMES, WINDOWS = 24, 22


@pytest.fixture
def stub(monkeypatch):
    """A server of the model 'reward', whose n-th window has the reward n thousandths."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    server = CompletionStub()
    server.answer = numbered()
    yield server
    server.close()


def numbered(good: int = 10**6):
    """Rewards that count the answers, in thousandths; after so many of them the server is away."""
    lock, given = threading.Lock(), [0]

    def answer(exchange):
        with lock:
            given[0] += 1
            number = given[0]
        if number > good:
            return exchange.error(503)
        return message(f'<think>\ncorrect\n</think>\n\n0.{number:03}')

    return answer


def options(stub: CompletionStub, *more: str) -> list[str]:
    """What every call has."""
    return [
        '--rate', '5', '--task', TASK, '--engine', 'server', '--model', 'reward', '--server-url', stub.url,
        '--server-checkpoint', 'tabletop', *more]


def test_a_run_stops_in_one_line_where_the_server_is_away_and_goes_on_from_there(stub, tmp_path, capsys):
    """No reward is made up, none is missing, and those that were there stay."""
    clip, out = write_images(tmp_path / 'clip', FRAMES), tmp_path / 'out'
    call = ['score', str(clip), '-o', str(out), '--table', 'csv', '--batch', '4', *options(stub)]
    stub.answer = numbered(7)  # the last batch is answered in part
    assert main([*call, '--server-timeout', '0.3']) == 1
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert f'{stub.url} answered 503' in error
    assert f'{out} keeps what was scored, and the same command goes on from there' in error
    assert not (out / 'run.json').exists() and not (out / 'frames.csv').exists()
    stub.answer = numbered()
    assert main([*call, '--server-timeout', '5']) == 0
    results = read_results(out)
    frames = results.episodes[0].frames
    assert [frame.frame for frame in frames] == list(range(FRAMES - WINDOWS, FRAMES))
    rewards = [round(1000 * frame.reward) for frame in frames]
    assert (sorted(rewards[:5]), sorted(rewards[5:])) == ([*range(1, 6)], [*range(6, WINDOWS + 1)])
    assert results.run['model'] == 'reward' and 'model_files' not in results.run
    assert results.run['bounded'] is True
    assert {name: results.run['options'][name] for name in (
        'engine', 'server_url', 'server_checkpoint', 'image_format', 'jpeg_quality')} == {
            'engine': 'server', 'server_url': stub.url, 'server_checkpoint': 'tabletop',
            'image_format': 'png', 'jpeg_quality': 90}
    assert main([*call, '--image-format', 'jpeg']) == 1
    assert 'image_format is "jpeg", and what is there was scored with "png"' in capsys.readouterr().err


def test_options_reach_the_server(stub, tmp_path, capsys):
    """As `rank` has them, which writes them down; pictures are JPEG then."""
    clip, file = write_images(tmp_path / 'clip', 8), tmp_path / 'ranking.json'
    more = ['--image-format', 'jpeg', '--jpeg-quality', '70']
    assert main(['rank', str(clip), '-o', str(file), *options(stub, *more)]) == 0
    content = stub.scored[0].body['messages'][1]['content']
    assert content[0]['image_url']['url'].startswith('data:image/jpeg;base64,')
    found = json.loads(file.read_text())
    assert found['ranking'][0]['verdicts'] == 6
    assert found['options']['jpeg_quality'] == 70 and 'model_files' not in found


@pytest.mark.parametrize('verb', ['rank', 'score', 'calibrate', 'compare'])
@pytest.mark.parametrize(('more', 'why'), [
    (['--jpeg-quality', '0'], 'jpeg_quality is 0 (1 to 100 are allowed)'),
    (['--server-timeout', '0'], 'server_timeout is 0.0 (0.05 to 600 seconds are allowed)'),
    (['--engine', 'fast', '--server-url', 'http://robot/v1'], "server_url is set, and engine is 'fast'"),
])
def test_what_is_wrong_with_options_is_one_line(verb, more, why, tmp_path, capsys):
    """Of every verb that has them, before anything is opened."""
    inputs = {
        'rank': [str(tmp_path), '--task', TASK], 'compare': [str(tmp_path), '--task', TASK],
        'score': [str(tmp_path), '-o', str(tmp_path / 'out')], 'calibrate': [str(tmp_path)]}
    assert main([verb, *inputs[verb], *more]) == 1
    error = capsys.readouterr().err
    assert why in error
    assert error.count('\n') == 1


def test_a_server_that_is_not_there_ends_a_ranking_without_a_file(stub, tmp_path, capsys):
    """Not with the rewards of half the recordings."""
    clip, file = write_images(tmp_path / 'clip', 8), tmp_path / 'ranking.json'
    stub.close()
    assert main(['rank', str(clip), '-o', str(file), *options(stub, '--server-timeout', '0.3')]) == 1
    error = capsys.readouterr().err
    assert f'{stub.url} cannot be reached' in error and error.count('\n') == 1
    assert not file.exists()


def test_a_comparison_that_compares_nothing_is_refused(tmp_path, capsys):
    """The full model with itself."""
    assert main(['compare', str(tmp_path), '--task', TASK, '--quantization', 'none']) == 1
    assert "quantization is 'none' (int8 or int4 are allowed, or --engine server)" in capsys.readouterr().err
