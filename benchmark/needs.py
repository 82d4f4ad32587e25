"""What a fleet needs of a server with the released model, by arithmetic alone: nothing is measured here.

`python benchmark/needs.py` prints, for two picture sizes, tokens and floating-point operations of a request,
and the requests a second of a GPU, of which only the share --utilisation of its dense bfloat16 peak is used.
"""

from __future__ import annotations

import argparse

from generated import RELEASED

PEAKS = {'H100 SXM': 989.4, 'L40S': 362.1}  # TFLOP/s in bfloat16, dense, as NVIDIA's data sheets say
# Of 750 tokens with frames of 224x224, 603 are system prompt, task and tags; a prefix cache keeps the first
# of them, in blocks of 16. How many come before the pictures is not published; the task is some twenty.
FIXED, KEPT = 603, 576
MERGED_TOKENS = {'224x224': 49, '640x480': 300}  # of a frame
FRAMES, PATCHES_A_TOKEN, HEAD_SIZE = 3, 4, 128


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--utilisation', type=float, default=0.4, help='0 to 1 (default: %(default)s)')
    parser.add_argument('--rate', type=float, default=5.0, metavar='HZ', help='(default: %(default)s)')
    arguments = parser.parse_args()
    language, vision = weights()
    read = 2 * (language + RELEASED.vocabulary * RELEASED.hidden)
    print(f'weights: language {language / 1e9:.2f} G, vision {vision / 1e9:.2f} G; a token for all of a '
          f'batch reads {read / 1e9:.1f} GB of them')
    print(f'{"frames":>8} {"prefix":>8} {"tokens":>7} {"new":>6} {"TFLOP":>6} '
          + ' '.join(f'{f"{gpu} /s":>12} {"robots":>7}' for gpu in PEAKS))
    for size, merged in MERGED_TOKENS.items():
        for kept in (0, KEPT):
            tokens = FIXED + FRAMES * merged
            needed = tera_operations(merged, kept)
            rates = [peak * arguments.utilisation / needed for peak in PEAKS.values()]
            print(f'{size:>8} {"kept" if kept else "anew":>8} {tokens:>7} {tokens - kept:>6} {needed:>6.1f} '
                  + ' '.join(f'{rate:>12.0f} {rate / arguments.rate:>7.1f}' for rate in rates))
    print(f'robots: of one camera at {arguments.rate:g} Hz; {arguments.utilisation:g} of the peak is used')


def weights() -> tuple[int, int]:
    """Those of the language model's layers and of the vision tower's, without embeddings and norms."""
    shape = RELEASED
    attention = 2 * shape.hidden * HEAD_SIZE * (shape.heads + shape.key_value_heads)
    language = shape.layers * (attention + 3 * shape.hidden * shape.intermediate)
    vision = shape.vision_layers * (4 * shape.vision_hidden**2 + 2 * shape.vision_hidden
                                    * shape.vision_intermediate)
    return language, vision


def tera_operations(merged: int, kept: int) -> float:
    """Of the prefill of one request: two for each weight and new token or patch, and causal attention.

    merged: tokens of a frame. kept: tokens at the prompt's beginning whose keys and values are there.
    """
    language, vision = weights()
    tokens = FIXED + FRAMES * merged
    attention = 2 * RELEASED.layers * RELEASED.heads * HEAD_SIZE * (tokens**2 - kept**2)
    patches = FRAMES * merged * PATCHES_A_TOKEN
    return (2 * language * (tokens - kept) + attention + 2 * vision * patches) / 1e12


if __name__ == '__main__':
    main()
