"""How many frames a second `densereward score` scores, beside loops that ask for one window at a time.

`python benchmark/score.py` prints a table and writes benchmark/score.json. Every side scores the same
recordings, reading included, one recording after the other in turn, in one process and in an order that
rotates. The rates are medians over the recordings, so that what else the machine does for a while counts for
little; those of processor time do not depend on it.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers

from densereward_ros import __version__
from densereward_ros.cli.inputs import open_inputs
from densereward_ros.models.base import ModelOptions, RewardModel
from densereward_ros.models.opening import open_model
from densereward_ros.recordings.episode import Episode
from densereward_ros.recordings.windows import windows_of
from densereward_ros.scoring.journal import Journal
from densereward_ros.scoring.provenance import model_provenance
from densereward_ros.scoring.run import Windowing, head_of, score_episode
from densereward_ros.types import MalformedReply, Verdict

RESULTS = Path(__file__).with_name('score.json')
# Of other episodes than any figure of quality.
INPUTS = ('tabletop:8@4242',)

MEANING = {
    'reference_loop': "a loop over windows, the model card's procedure",
    'fast_loop': 'a loop over windows, the fast engine',
    'score': 'densereward score, journal and all',
}

Said = list[tuple[float, int] | None]


@dataclass
class Side:
    """What one side did, recording by recording.

    seconds, processor_s: for a window. said: reward and reason of each, None for a malformed reply.
    """

    score: Callable[[Episode], Said]
    seconds: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    said: Said = field(default_factory=list)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--inputs', nargs='+', default=list(INPUTS), help='as of densereward score')
    parser.add_argument('--task', default='', help='as of densereward score')
    parser.add_argument('--model', default='tabletop')
    parser.add_argument('--device', default='auto')
    parser.add_argument('--dtype', default='auto')
    parser.add_argument('--batch', type=int, nargs='+', default=[8], help='sizes to try; the first is told')
    parser.add_argument('--output', type=Path, default=RESULTS)
    options = parser.parse_args()
    episodes, failed = open_inputs(options.inputs, options.task)
    if failed:
        raise SystemExit(failed[0][1])
    opened = ModelOptions(model=options.model, device=options.device, dtype=options.dtype)
    fast = open_model(opened)
    reference = open_model(ModelOptions(
        model=options.model, device=options.device, dtype=options.dtype, engine='reference'))
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            'reference_loop': Side(lambda episode: loop(reference, episode)),
            'fast_loop': Side(lambda episode: loop(fast, episode)),
            **{
                'score' if batch == options.batch[0] else f'score_{batch}': Side(
                    lambda episode, batch=batch: batches(fast, episode, batch, folder))
                for batch in options.batch}}
        compete(sides, episodes)
    figures = {
        'machine': platform.processor() or platform.machine(),
        'device': torch.cuda.get_device_name() if fast.runs_on.startswith('cuda') else 'cpu',
        'runs_on': fast.runs_on, 'threads': torch.get_num_threads(), 'torch': torch.__version__,
        'transformers': transformers.__version__, 'package_version': __version__,
        'model': fast.name, **model_provenance(opened), 'inputs': options.inputs,
        'recordings': len(episodes), 'batch': options.batch[0], **report(sides)}
    options.output.write_text(json.dumps(figures, indent=2) + '\n')
    print(f'written to {options.output}')


def loop(model: RewardModel, episode: Episode) -> Said:
    """What users write: each window as it comes."""
    return [_short(*model.score([seen.window])) for seen in windows_of(episode)]


def batches(model: RewardModel, episode: Episode, batch: int, folder: str) -> Said:
    """What the command does with a recording."""
    with tempfile.NamedTemporaryFile(dir=folder) as file, Journal(
            Path(file.name), head_of(episode)) as journal:
        score_episode(model, episode, journal, Windowing(batch=batch), lambda frame: None)
        return [
            None if frame.reward is None else (frame.reward, int(frame.reason))
            for frame in journal.recorded.frames]


def compete(sides: dict[str, Side], episodes: list[Episode]) -> None:
    """Each recording by each side; the first one, to warm up, once more before."""
    names = list(sides)
    for number, episode in enumerate([episodes[0], *episodes]):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            side = sides[name]
            started, processor = time.perf_counter(), time.process_time()
            said = side.score(episode)
            if number:
                side.seconds.append((time.perf_counter() - started) / len(said))
                side.processor_s.append((time.process_time() - processor) / len(said))
                side.said += said


def report(sides: dict[str, Side]) -> dict[str, Any]:
    """Print the table; the figures for JSON."""
    told = sides['score']
    rates = {name: 1 / statistics.median(side.seconds) for name, side in sides.items()}
    processor = {name: 1 / statistics.median(side.processor_s) for name, side in sides.items()}
    print(f'{len(told.said)} windows')
    print(f'{"":52}{"frames/s":>10}{"ratio":>8}{"a processor second":>20}{"ratio":>8}')
    for name, rate in rates.items():
        print(f'{MEANING.get(name, name):52}{rate:10.1f}{rate / rates["reference_loop"]:8.2f}'
              f'{processor[name]:20.1f}{processor[name] / processor["reference_loop"]:8.2f}')
    wanted = sides['reference_loop'].said
    differing = {
        name: sum(one != other for one, other in zip(side.said, wanted, strict=True))
        for name, side in sides.items()}
    print(f'verdicts that differ from the reference: {differing}')
    return {
        'windows': len(told.said),
        'frames_per_second': {name: round(rate, 2) for name, rate in rates.items()},
        'frames_per_processor_second': {name: round(rate, 2) for name, rate in processor.items()},
        'ratio': round(rates['score'] / rates['reference_loop'], 2),
        'ratio_to_fast_loop': round(rates['score'] / rates['fast_loop'], 2),
        'processor_ratio': round(processor['score'] / processor['reference_loop'], 2),
        'processor_ratio_to_fast_loop': round(processor['score'] / processor['fast_loop'], 2),
        'verdicts_differing': differing}


def _short(outcome: Verdict | MalformedReply) -> tuple[float, int] | None:
    return (outcome.reward, int(outcome.reason)) if isinstance(outcome, Verdict) else None


if __name__ == '__main__':
    main()
