"""Training the demo checkpoint from nothing, on one core, in well under an hour."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Callable

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

from densereward_ros.models.prompt import build_messages, read_system_prompt
from densereward_ros.models.reply import format_reply
from densereward_ros.tabletop.checkpoint import build_model, save_weights, write_texts
from densereward_ros.tabletop.network import Network
from densereward_ros.tabletop.optimiser import Muon
from densereward_ros.tabletop.samples import FRAME_TARGETS, KINDS, WINDOW_TARGETS, WINDOWS, Chunk, chunks
from densereward_ros.types import FRAMES_PER_WINDOW

CHUNKS_OF_A_BATCH = 4  # and twice as many in the second half, when gradients must be less noisy
PEAK_RATE = 1.2e-3
MATRIX_RATE = 5e-3  # of the matrices that Muon moves
WARM_UP = 0.03  # of the whole time
AVERAGING = 0.998  # the checkpoint is a running average of the weights of about the last 500 steps
# How much each token of '<think>\nWORD\n</think>\n\n0.374<|im_end|>' counts: hardly any model can learn
# the third decimal.
TOKEN_WEIGHTS = (0.2, 0.2, 3.0, 0.2, 0.2, 0.2, 2.0, 0.2, 2.0, 1.0, 0.3, 0.2)
DECIDING = (2, 8)  # where the word and the tenths are about to be written
AUXILIARY = 3.0
NAMED_BLOCK, NAMED_PLATE = (0, 1, 5), (2,)  # of a window's targets, those that one word decides
SEEN_WEIGHT = 4.0  # few of a picture's parts hold any one thing

# The seed of training's episodes; evaluation uses others.
TRAINING_SEED = 1000


class Encoder:
    """Turns chunks into what the network reads, exactly as a reward model's own procedure would."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoProcessor

        self.processor = AutoProcessor.from_pretrained(folder)
        self.system_prompt = read_system_prompt(folder)
        self._texts: dict[str, list[int]] = {}
        before, _ = self._around('')
        self.prefix = torch.tensor(self.processor.tokenizer(before)['input_ids'])
        self.pad = self.processor.tokenizer.pad_token_id

    def pixels(self, pictures: np.ndarray) -> torch.Tensor:
        """(frames, patches, values) of uint8 pictures (frames, height, width, 3)."""
        from qwen_vl_utils.vision_process import fetch_image

        images = [fetch_image({'image': Image.fromarray(picture)}) for picture in pictures]
        values = self.processor.image_processor(images=images, return_tensors='pt')['pixel_values']
        return values.view(len(images), -1, values.shape[-1])

    def grid(self, picture: np.ndarray) -> tuple[int, int]:
        """Rows and columns of patches that a picture of this size becomes."""
        from qwen_vl_utils.vision_process import fetch_image

        image = fetch_image({'image': Image.fromarray(picture)})
        _, rows, columns = self.processor.image_processor(images=[image], return_tensors='pt')[
            'image_grid_thw'
        ][0]
        return int(rows), int(columns)

    def after_images(self, task: str) -> list[int]:
        """Ids of the prompt from behind the last image to its end."""
        if task not in self._texts:
            self._texts[task] = self.processor.tokenizer(self._around(task)[1])['input_ids']
        return self._texts[task]

    def reply(self, reason, reward: float) -> list[int]:
        """Ids of the whole reply."""
        return self.processor.tokenizer(format_reply(reason, reward) + '<|im_end|>')['input_ids']

    def texts(self, batch: list[Chunk]) -> tuple[torch.Tensor, torch.Tensor]:
        """Padded ids (windows, length) of task and reply, and the index of each reply's first token."""
        rows, starts = [], []
        for chunk in batch:
            for task, reason, reward in zip(chunk.tasks, chunk.reasons, chunk.rewards):
                asked = self.after_images(task)
                rows.append(asked + self.reply(reason, reward))
                starts.append(len(asked))
        longest = max(map(len, rows))
        return torch.tensor([row + [self.pad] * (longest - len(row)) for row in rows]), torch.tensor(starts)

    def named(self, texts: torch.Tensor) -> torch.Tensor:
        """(windows, 2): which tokens of each text are the colours of the block and of the plate."""
        tokenizer = self.processor.tokenizer
        ids = [tokenizer(word)['input_ids'][0] for word in (' block', ' plate')]
        return torch.stack([(texts == i).int().argmax(1) - 1 for i in ids], 1)

    def _around(self, task: str) -> tuple[str, str]:
        """The prompt's text before its first image and behind its last one."""
        messages = build_messages(self.system_prompt, [None] * FRAMES_PER_WINDOW, task)
        text = self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        image = '<|vision_start|><|image_pad|><|vision_end|>'
        before, after = text.split(image * FRAMES_PER_WINDOW)
        return before, after


class Trainer:
    """Model, optimiser and running average; `step` learns from one batch."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.ids = write_texts(folder)
        torch.manual_seed(seed)
        self.model = build_model(self.ids)
        self.encoder = Encoder(folder)
        grid = self.encoder.grid(np.zeros((96, 128, 3), np.uint8))
        self.network = Network(self.model, grid)
        hidden = self.model.config.text_config.hidden_size
        # Heads that say what is where: from each of a frame's tokens, from what the language model has read
        # when an image ends, from the words that name the block and the plate, and from where it is about to
        # decide. They teach it to look, and are thrown away.
        self.cell_head = nn.Linear(hidden, KINDS * 3)
        self.summary_head = nn.Linear(hidden, FRAME_TARGETS)
        self.block_head = nn.Linear(hidden, len(NAMED_BLOCK))
        self.plate_head = nn.Linear(hidden, len(NAMED_PLATE))
        self.window_head = nn.Linear(hidden, WINDOW_TARGETS)
        self.parameters = [
            *self.model.parameters(),
            *self.cell_head.parameters(),
            *self.summary_head.parameters(),
            *self.block_head.parameters(),
            *self.plate_head.parameters(),
            *self.window_head.parameters(),
        ]
        # The three mergers' large matrices would cost Muon more than they gain from it.
        hidden_matrices = [
            p
            for name, p in self.model.named_parameters()
            if p.ndim == 2 and min(p.shape) == hidden and 'embed' not in name
        ]
        moved = {id(p) for p in hidden_matrices}
        rest = [p for p in self.parameters if id(p) not in moved]
        self.muon = Muon(hidden_matrices)
        self.adam = torch.optim.AdamW(
            [
                {'params': [p for p in rest if p.ndim > 1], 'weight_decay': 0.05},
                {'params': [p for p in rest if p.ndim <= 1], 'weight_decay': 0.0},
            ],
            lr=PEAK_RATE,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.average = [p.detach().clone() for p in self.model.parameters()]
        self.steps = 0
        self._weights = torch.tensor(TOKEN_WEIGHTS) / sum(TOKEN_WEIGHTS)

    def step(self, batch: list[Chunk], share: float) -> dict[str, float]:
        """One step; share: how much of the time has passed, in [0, 1]. Returns the losses and hit rates."""
        for group in self.adam.param_groups:
            group['lr'] = PEAK_RATE * _schedule(share)
        pictures = np.concatenate([chunk.pictures for chunk in batch])
        features, deep = self.network.see(self.encoder.pixels(pictures))
        texts, starts = self.encoder.texts(batch)
        named = self.encoder.named(texts)
        places = starts[:, None] + torch.arange(-1, len(TOKEN_WEIGHTS) - 1)
        ends = self.network.image_ends.expand(len(places), -1)
        read = self.network.read(
            self.encoder.prefix,
            texts,
            torch.cat([ends, self.network.images_length + torch.cat([named, places], 1)], 1),
            in_windows(features, len(batch)),
            [in_windows(layer, len(batch)) for layer in deep],
        )
        summaries, things, states = read.split([FRAMES_PER_WINDOW, named.shape[1], len(TOKEN_WEIGHTS)], 1)
        wanted = texts.gather(1, places + 1)
        logits = self.model.lm_head(states)
        losses = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction='none').view(wanted.shape)
        reply_loss = (losses * self._weights).sum(1).mean()
        frames = torch.from_numpy(np.stack([chunk.frame_targets for chunk in batch]))
        cells = torch.from_numpy(np.concatenate([chunk.cell_targets for chunk in batch]))
        where = _cell_loss(self.cell_head(features), cells)
        where_read = _masked_loss(self.summary_head(summaries), in_windows(frames.flatten(0, 1), len(batch)))
        asked = torch.from_numpy(np.concatenate([chunk.window_targets for chunk in batch]))
        block = _masked_loss(self.block_head(things[:, 0]), asked[:, NAMED_BLOCK])
        plate = _masked_loss(self.plate_head(things[:, 1]), asked[:, NAMED_PLATE])
        what = _masked_loss(
            self.window_head(states[:, DECIDING]), asked[:, None].expand(-1, len(DECIDING), -1)
        )
        loss = reply_loss + AUXILIARY * (where + where_read + block + plate + what)
        for parameter in self.parameters:
            parameter.grad = None
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.adam.step()
        self.muon.step(MATRIX_RATE * _schedule(share))
        self.steps += 1
        keep = min(AVERAGING, self.steps / (self.steps + 10))
        with torch.no_grad():
            torch._foreach_lerp_(self.average, [p.detach() for p in self.model.parameters()], 1 - keep)
        guessed = logits.detach().argmax(-1)
        right = (guessed == wanted).float().mean(0)
        return {
            'loss': reply_loss.item(),
            'where': where.item(),
            'read': where_read.item(),
            'block': block.item(),
            'plate': plate.item(),
            'what': what.item(),
            'word': right[2].item(),
            'tenths': right[8].item(),
            'hundredths': right[9].item(),
        }

    def save(self, folder: Path) -> None:
        """Write the averaged weights into a folder."""
        with torch.no_grad():
            for parameter, value in zip(self.model.parameters(), self.average):
                parameter.copy_(value)
        save_weights(self.model, folder)


def train(folder: str | Path, minutes: float, seed: int = 0, report: Callable[[str], None] = print) -> Path:
    """Train for that long and put the finished checkpoint in `folder`, all at once, at the end.

    Uses one core, and a part of a second one for painting. Raises OSError when the folder cannot be written.
    """
    folder = Path(folder).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix='.training-') as scratch:
        work = Path(scratch) / folder.name
        work.mkdir(mode=0o755)
        trainer = Trainer(work, seed)
        report(
            f'training {sum(p.numel() for p in trainer.model.parameters()) / 1e6:.1f}M parameters '
            f'for {minutes:g} minutes'
        )
        _run(trainer, minutes * 60, seed, report)
        trainer.save(work)
        if folder.exists():
            shutil.move(folder, Path(scratch) / 'old')
        os.rename(work, folder)
    report(f'wrote {folder}')
    return folder


def _run(trainer: Trainer, seconds: float, seed: int, report: Callable[[str], None]) -> None:
    context = multiprocessing.get_context('spawn')
    queue = context.Queue(maxsize=12)
    painter = context.Process(target=_paint, args=(queue, TRAINING_SEED + seed), daemon=True)
    painter.start()
    try:
        batch = queue.get(timeout=120)
        start = last = time.monotonic()
        recent: list[dict[str, float]] = []
        while (passed := time.monotonic() - start) < seconds:
            if passed > seconds / 2:
                batch = batch + queue.get(timeout=120)
            recent.append(trainer.step(batch, passed / seconds))
            if time.monotonic() - last > 20:
                last = time.monotonic()
                report(_line(trainer.steps, recent, passed, seconds))
                recent = []
            batch = queue.get(timeout=120)
    finally:
        painter.terminate()
        painter.join()


def _line(steps: int, recent: list[dict[str, float]], passed: float, seconds: float) -> str:
    means = {key: sum(values[key] for values in recent) / len(recent) for key in recent[0]}
    left = max(0.0, seconds - passed)
    figures = '  '.join(f'{key} {value:.3f}' for key, value in means.items())
    return f'{left / 60:5.1f} min left  step {steps:5d}  {figures}'


def _paint(queue, seed: int) -> None:
    """Runs in a process of its own: batches of chunks, for ever."""
    source = chunks(seed)
    while True:
        queue.put([next(source) for _ in range(CHUNKS_OF_A_BATCH)])


def _schedule(share: float) -> float:
    """Warm up, then a cosine down to a hundredth."""
    if share < WARM_UP:
        return share / WARM_UP
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (share - WARM_UP) / (1 - WARM_UP)))


def in_windows(features: torch.Tensor, count: int) -> torch.Tensor:
    """(chunks * 6, tokens, hidden) to (chunks * 4, 3, tokens, hidden): every three frames in a row."""
    frames = features.view(count, -1, *features.shape[1:])
    windows = torch.stack([frames[:, k : k + FRAMES_PER_WINDOW] for k in range(WINDOWS)], 1)
    return windows.flatten(0, 1)


def _cell_loss(guess: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """guess: (frames, tokens, KINDS * 3). target: (frames, tokens, KINDS, 3), places NaN where nothing is."""
    guess = guess.view(target.shape)
    seen = F.binary_cross_entropy_with_logits(
        guess[..., 0], target[..., 0], pos_weight=torch.tensor(SEEN_WEIGHT)
    )
    return seen + _masked_loss(guess[..., 1:], target[..., 1:])


def _masked_loss(guess: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    known = ~target.isnan()
    return F.smooth_l1_loss(guess[known], target[known], beta=0.1)
