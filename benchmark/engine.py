"""How long a reply takes: the model card's procedure and every step of the fast engine, side by side.

`python benchmark/engine.py` prints a table and writes benchmark/engine.json; `--cases` chooses.
Every stage judges the same windows in turn, in one process, in an order that rotates, so that
whatever else the machine does meets all of them alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
import transformers
from generated import MIDDLE, RELEASED, Script, generated_model

from densereward_ros.models import checkpoint, loading
from densereward_ros.models.base import MIN_NEW_TOKENS, ModelError, ModelOptions
from densereward_ros.models.fast import graphs
from densereward_ros.models.fast.engine import Shortcuts
from densereward_ros.models.fast.model import FastModel
from densereward_ros.models.fast.positions import rope_positions
from densereward_ros.models.loading import LoadedModel
from densereward_ros.models.reference import ReferenceModel
from densereward_ros.models.reply import format_reply, parse_reply
from densereward_ros.types import FAILURES, Frame, MalformedReply, Reason, Window

RESULTS = Path(__file__).with_name('engine.json')

STAGES = {
    'features': Shortcuts(True, False, False, False, False, False),
    'prefix': Shortcuts(True, True, False, False, False, False),
    'template': Shortcuts(True, True, True, False, False, False),
    'previous': Shortcuts(True, True, True, True, False, False),
    'format': Shortcuts(True, True, True, True, False, True),
    'tree': Shortcuts(),
    'fast': Shortcuts(),  # and what is known beforehand is read in idle time
    'graphs': Shortcuts(),  # and on CUDA passes are recorded
}
MEANING = {
    'reference': "the model card's procedure",
    'features': 'each frame is encoded once',
    'prefix': 'keys and values of what stays the same are kept',
    'template': 'a template reply is verified in one pass',
    'previous': 'the reply before is verified in one pass',
    'format': 'the reply ends at its third decimal',
    'tree': 'several numbers are verified at once',
    'fast': 'the two older frames are read in idle time',
    'graphs': 'the passes are recorded and replayed',
}
READ_AHEAD = ('fast', 'graphs')
WARM_UP, LEAST_WINDOWS, LEAST_EMULATED = 2, 5, 2
NEAR_TIE = 1e-4
BF16_WINDOWS = 200


@dataclass
class Case:
    """A model and the windows that it judges. script: None where the model replies by itself."""

    loaded: LoadedModel
    windows: Iterator[Window]
    replies: Iterator[str] | None
    script: Script | None
    sliding: bool


@dataclass
class Measured:
    """What one stage did. Times in milliseconds; idle: spent before the newest frame came."""

    times: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    passes: int = 0
    tokens: int = 0
    frames: int = 0
    mismatches: int = 0
    near_ties: int = 0


class Contest:
    """Lets the reference and stages of the engine judge the windows of a case in turn."""

    def __init__(self, case: Case, names: list[str]) -> None:
        self.results: dict[str, Measured] = {}
        self._case = case
        self._names = names
        self._device = case.loaded.network.device
        self._reference = ReferenceModel(case.loaded, MIN_NEW_TOKENS)
        self._engines = {
            name: FastModel(
                case.loaded, MIN_NEW_TOKENS, STAGES[name], graphs.Recorder() if name == 'graphs' else None
            )
            for name in names
            if name in STAGES
        }

    def run(self, seconds: float, least: int, most: int) -> dict[str, Measured]:
        """Judge windows for this long, but at least and at most so many, after some that warm up."""
        for number in range(-WARM_UP, most):
            if number <= 0:
                self.results = {name: Measured() for name in self._names}
                until = time.perf_counter() + seconds
            self._judge(next(self._case.windows), number)
            if number + 1 >= least and time.perf_counter() > until:
                break
        return self.results

    def _judge(self, window: Window, number: int) -> None:
        case, turn = self._case, number % len(self._names)
        inputs = self._reference.encode(window)
        if case.script:
            case.script.set(next(case.replies), _reply_position(case.loaded, inputs))
        for name in READ_AHEAD:
            if case.sliding and name in self._engines:
                known = Window(window.camera, window.task, window.frames[:-1])
                prepare = partial(self._engines[name].prepare, [known])
                self.results[name].idle.append(self._timed(prepare))
        tokens = {}
        for name in self._names[turn:] + self._names[:turn]:
            tokens[name] = self._run_engine(name, window) if name in STAGES else self._run_reference(window)
        wanted = tokens.pop('reference')
        self.results['reference'].tokens += inputs['input_ids'].shape[1] - 1
        for name, got in tokens.items():
            if got != (wanted[: len(got)] if STAGES[name].format else wanted):
                self.results[name].mismatches += 1
                self.results[name].near_ties += _is_near_tie(case.loaded, inputs, got, wanted)

    def _run_reference(self, window: Window) -> list[int]:
        result, tokens = self.results['reference'], []

        def judge() -> None:
            output = self._reference.generate(self._reference.encode(window))
            parse_reply(self._reference.decode(output))
            tokens.extend(output[0].tolist())

        result.times.append(self._timed(judge))
        result.passes += len(tokens)
        result.tokens += len(tokens)
        result.frames += len(window.frames)
        return tokens

    def _run_engine(self, name: str, window: Window) -> list[int]:
        result, engine, replies = self.results[name], self._engines[name], []
        before = engine.effort
        result.times.append(self._timed(lambda: replies.extend(engine.generate([window]))))
        done = engine.effort - before
        result.passes += done.passes
        result.tokens += done.tokens
        result.frames += done.frames_encoded
        return replies[0].tokens

    def _timed(self, work: Callable[[], object]) -> float:
        """Milliseconds."""
        machine.wait(self._device)
        started = time.perf_counter()
        work()
        machine.wait(self._device)
        return 1000 * (time.perf_counter() - started)


def _reply_position(loaded: LoadedModel, inputs: Any) -> int:
    """The rotary position of a reply's first token."""
    ids = inputs['input_ids'][0]
    config = loaded.network.config
    merge = config.vision_config.spatial_merge_size
    pads = int((ids == config.image_token_id).sum())
    pictures = [(rows // merge, columns // merge) for _, rows, columns in inputs['image_grid_thw'].tolist()]
    return rope_positions([len(ids) - pads, *pictures])[1]


def _is_near_tie(loaded: LoadedModel, inputs: Any, tokens: list[int], wanted: list[int]) -> bool:
    """Whether the reference's two best tokens are within rounding where the replies part."""
    at = next((i for i, (one, other) in enumerate(zip(tokens, wanted)) if one != other), None)
    if at is None:
        return False
    loaded.network.model.rope_deltas = None
    with torch.no_grad():
        output = loaded.network.generate(
            **inputs, max_new_tokens=at + 1, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
    best = output.logits[at][0].float().topk(2).values
    return bool(best[0] - best[1] < NEAR_TIE)


def report(case: Case, results: dict[str, Measured], rates: tuple[float, float]) -> dict[str, Any]:
    """The figures of a case, printed as a table."""
    base = statistics.median(results['reference'].times)
    stages = {}
    print(f'{"stage":<10} {"median ms":>9} {"p95 ms":>9} {"ratio":>6} {"passes":>7} {"tokens":>7} '
          f'{"frames":>7} {"idle ms":>8} {"mismatch":>8}')  # fmt: skip
    for name, result in results.items():
        count = len(result.times)
        stages[name] = figures = {
            'median_ms': round(statistics.median(result.times), 2),
            'p95_ms': round(float(np.percentile(result.times, 95)), 2),
            'ratio': round(base / statistics.median(result.times), 2),
            'passes_per_reply': round(result.passes / count, 2),
            'tokens_per_reply': round(result.tokens / count, 1),
            'frames_encoded_per_reply': round(result.frames / count, 2),
            'idle_ms': round(statistics.median(result.idle), 2) if result.idle else 0.0,
            'mismatches': result.mismatches,
            'near_ties': result.near_ties,
        }
        print(f'{name:<10} {figures["median_ms"]:>9.1f} {figures["p95_ms"]:>9.1f} {figures["ratio"]:>6.2f} '
              f'{figures["passes_per_reply"]:>7.2f} {figures["tokens_per_reply"]:>7.1f} '
              f'{figures["frames_encoded_per_reply"]:>7.2f} {figures["idle_ms"]:>8.1f} '
              f'{figures["mismatches"]:>8}   {MEANING[name]}')  # fmt: skip
    floor = _floor(case, stages['fast'], rates)
    count = len(results['reference'].times)
    print(
        f'{count} windows; floor of the fast engine {floor["total_ms"]:.1f} ms: language model '
        f'{floor["language_ms"]:.1f} (the slower of reading its weights {floor["weights_ms"]:.1f} and '
        f'multiplying with them {floor["multiply_ms"]:.1f}), vision {floor["vision_ms"]:.1f}\n'
    )
    return {'windows': count, 'stages': stages, 'floor': floor}


def _floor(case: Case, fast: dict[str, Any], rates: tuple[float, float]) -> dict[str, float]:
    """Milliseconds of a reply if weights were read and multiplied at the measured rates, and nothing else."""
    multiply_rate, read_rate = rates
    network = case.loaded.network
    language, vision = machine.weights_of(network)
    inputs_patches = _patches(case)
    weights_ms = 1000 * language * network.dtype.itemsize / read_rate
    multiply_ms = 1000 * 2 * language * fast['tokens_per_reply'] / multiply_rate
    # At least one pass reads all weights; what is multiplied beyond that may hide behind it.
    vision_ms = 1000 * 2 * vision * inputs_patches * fast['frames_encoded_per_reply'] / multiply_rate
    language_ms = max(weights_ms, multiply_ms)
    return {
        'weights_ms': weights_ms,
        'multiply_ms': multiply_ms,
        'language_ms': language_ms,
        'vision_ms': vision_ms,
        'total_ms': language_ms + vision_ms,
    }


def _patches(case: Case) -> int:
    inputs = ReferenceModel(case.loaded, MIN_NEW_TOKENS).encode(next(case.windows))
    return int(inputs['image_grid_thw'][-1].prod())


def compare_bf16(device: torch.device, count: int) -> dict[str, Any]:
    """How far the engines' verdicts are apart in bfloat16, where the order of sums changes the last bits."""
    found = checkpoint.find('tabletop', 'main', print)
    loaded = loading.load(found, ModelOptions(device=str(device), dtype='bfloat16'), lambda line: None)
    reference, fast = ReferenceModel(loaded, MIN_NEW_TOKENS), FastModel(loaded, MIN_NEW_TOKENS)
    words, differences = 0, []
    for window in itertools.islice(windows_of(demo_pictures(True), True), count):
        (wanted,), (got,) = reference.score([window]), fast.score([window])
        if isinstance(wanted, MalformedReply) or isinstance(got, MalformedReply):
            words += type(wanted) is not type(got)
            continue
        words += wanted.reason is not got.reason
        differences.append(abs(wanted.reward - got.reward))
    figures = {
        'windows': count,
        'words_differing': words,
        'rewards_differing': sum(difference > 0 for difference in differences),
        'largest_difference': round(max(differences), 3),
    }
    print(f'demo in bfloat16, fast against reference: {figures}\n')
    return figures


def windows_of(pictures: Iterator[tuple[str, np.ndarray]], sliding: bool) -> Iterator[Window]:
    """Windows of frames with tasks, either sliding by one frame or sharing none."""
    frames: list[Frame] = []
    for stamp, (task, picture) in enumerate(pictures):
        frames.append(Frame(stamp, stamp, lambda picture=picture: picture))
        if len(frames) == 3:
            yield Window('/camera', task, tuple(frames))
            frames = frames[1:] if sliding else []


def demo_pictures(steady: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Pictures of the simulated robot, five a second; unless steady, three every two seconds."""
    from densereward_ros.tabletop.episode import LiveTable

    for seed in itertools.count(9_000_000):
        table = LiveTable(seed, [FAILURES[seed % len(FAILURES)]] if seed % 2 else [])
        for tick in range(120):
            if table.done:
                break
            table.step()
            if tick == 60:
                table.recover()
            if tick % 2 and (steady or tick % 40 in (1, 3, 5)):
                yield table.task, table.render()


def noise_pictures(height: int, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """Pictures of nothing in particular."""
    random = np.random.default_rng(0)
    while True:
        yield 'put the red block on the blue plate', random.integers(0, 256, (height, width, 3), np.uint8)


def scripted_replies(steady: bool) -> Iterator[str]:
    """Replies that change slowly, with failures, or that have nothing to do with one another."""
    random = np.random.default_rng(1)
    reward, word = 0.1, Reason.CORRECT
    while True:
        if steady:
            if word.is_failure or random.random() > 0.04:
                word = Reason.CORRECT if random.random() < 0.3 or not word.is_failure else word
            else:
                word = FAILURES[random.integers(len(FAILURES))]
            step = -0.15 * (word.is_failure and random.random() < 0.3) + random.normal(0.006, 0.006)
            reward = float(np.clip(reward + step, 0, 1)) if reward < 1 else 0.05
        else:
            word, reward = (Reason.CORRECT, *FAILURES)[random.integers(6)], float(random.random())
        yield format_reply(word, round(reward, 3))


def open_case(name: str, device: torch.device) -> Case:
    """The case of this name. Raises ModelError where its model is not there."""
    model = name.removesuffix('_disjoint')
    sliding = model == name
    if model == 'demo':
        options = ModelOptions(device=str(device), dtype='float32')
        loaded = loading.load(checkpoint.find('tabletop', 'main', print), options, print)
        return Case(loaded, windows_of(demo_pictures(sliding), sliding), None, None, sliding)
    if model.startswith('mid'):
        dtype = torch.bfloat16 if model.endswith('bf16') else torch.float32
        loaded, size = generated_model(name, MIDDLE, dtype, device), (480, 640)
    else:
        side = int(model.removeprefix('released_'))
        loaded = generated_model(name, RELEASED, torch.bfloat16, device)
        size = (480, 640) if side == 640 else (side, side)
    pictures = noise_pictures(*size)
    return Case(loaded, windows_of(pictures, sliding), scripted_replies(sliding), Script(loaded), sliding)


CPU_CASES = [f'{model}{twin}' for model in ('demo', 'mid_fp32', 'mid_bf16') for twin in ('', '_disjoint')]
GPU_CASES = [f'released_{side}{twin}' for side in (640, 224) for twin in ('', '_disjoint')]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--cases', nargs='+', choices=CPU_CASES + GPU_CASES, default=CPU_CASES)
    parser.add_argument('--stages', nargs='+', choices=list(STAGES), default=list(STAGES))
    parser.add_argument('--gpu', action='store_true', help='a 4B-shaped model with random weights, on CUDA')
    parser.add_argument('--seconds', type=float, default=60.0, help='for each case')
    parser.add_argument('--windows', type=int, default=400, help='at most, for each case')
    parser.add_argument('--output', type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.gpu and not torch.cuda.is_available():
        raise SystemExit('torch sees no CUDA GPU, and this part of the benchmark needs one')
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    cases = GPU_CASES if options.gpu else options.cases
    results: dict[str, Any] = {
        'machine': platform.processor() or platform.machine(),
        'device': torch.cuda.get_device_name(device) if device.type == 'cuda' else 'cpu',
        'threads': torch.get_num_threads(),
        'torch': torch.__version__,
        'transformers': transformers.__version__,
        'cases': {},
    }
    for name in cases:
        try:
            case = open_case(name, device)
        except ModelError as error:
            print(f'{name}: left out, since {error}\n')
            continue
        dtype = case.loaded.network.dtype
        rates = machine.matmul_rate(dtype, device), machine.read_rate(dtype, device)
        count = sum(weight.numel() for weight in case.loaded.network.parameters())
        print(f'{name}: {count / 1e6:.1f}M weights, '
              f'{dtype}, {device}; {rates[0] / 1e9:.0f} GFLOP/s, {rates[1] / 1e9:.1f} GB/s')  # fmt: skip
        stages = [name for name in options.stages if name != 'graphs' or device.type == 'cuda']
        names, least = ['reference', *stages], LEAST_WINDOWS
        if dtype != torch.float32 and rates[0] < machine.matmul_rate(torch.float32, device) / 2:
            print(f'this machine emulates {dtype}, which takes minutes: only the first and the last stage')
            names, least = ['reference', 'fast'], LEAST_EMULATED
        with torch.inference_mode():
            results_of_case = Contest(case, names).run(options.seconds, least, options.windows)
            figures = report(case, results_of_case, rates)
        figures['peak_memory_mb'] = round(machine.peak_memory(device) / 1e6)
        results['cases'][name] = figures
        if name == 'demo':
            results['demo_bf16_agreement'] = compare_bf16(device, min(BF16_WINDOWS, options.windows))
        options.output.write_text(json.dumps(results, indent=2) + '\n')
    print(f'written to {options.output}')


if __name__ == '__main__':
    main()
