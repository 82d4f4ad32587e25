"""Install the part that needs no ROS: `pip install .` gives the modules and the `densereward` command.

In a ROS 2 workspace colcon builds with CMakeLists.txt and does not read this file.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
SHARE = 'share/densereward_ros'
MESSAGES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / 'msg').glob('*.msg'))]


def version():
    """The version that densereward_ros/__init__.py states, read without importing it."""
    text = (ROOT / 'densereward_ros' / '__init__.py').read_text(encoding='utf-8')
    return re.search(r"^__version__ = '([^']+)'$", text, re.MULTILINE).group(1)


def checkpoint_files():
    """The demo checkpoint, at the same place under the prefix as in a ROS 2 install."""
    folder = ROOT / 'models' / 'tabletop'
    files = [str(path.relative_to(ROOT)) for path in sorted(folder.glob('*')) if path.is_file()]
    return [(f'{SHARE}/models/tabletop', files)]


setup(
    name='densereward_ros',
    version=version(),
    description='Dense rewards and failure events for robots from a vision-language reward model',
    license='Apache-2.0',
    packages=find_packages(include=['densereward_ros', 'densereward_ros.*']),
    python_requires='>=3.10',
    install_requires=['numpy', 'pillow'],
    extras_require={
        'model': [
            'torch',
            'torchvision',
            'transformers>=4.57',
            'accelerate',
            'qwen-vl-utils>=0.0.14',
            'huggingface_hub',
        ],
        'quantized': ['torchao>=0.13'],
        'server': ['openai>=2'],
        'cluster': ['ray[data]>=2.40'],
        'tools': ['av', 'matplotlib', 'pyarrow', 'pyyaml', 'rosbags', 'scipy', 'tqdm'],
        'test': ['pytest', 'pytest-timeout', 'pytest-rerunfailures', 'hypothesis'],
    },
    data_files=[*checkpoint_files(), (f'{SHARE}/msg', MESSAGES)],
    entry_points={'console_scripts': ['densereward = densereward_ros.cli:main']},
    zip_safe=False,
)
