"""Names of episodes are names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.recordings.names import MAX_BYTES, path_name, unique_names


@pytest.mark.parametrize(('parts', 'name'), [
    (('run', '/camera/image_raw'), 'run-camera_image_raw'),
    (('run 7 (good)',), 'run_7_good'),
    (('2026-08-01.v2', 'episode_000003', 'front'), '2026-08-01.v2-episode_000003-front'),
    (('../../etc', '/passwd'), 'etc-passwd'),
    (('.hidden',), 'hidden'),
    (('', '/'), 'episode'),
    (('стол', '杯'), 'стол-杯'),
    (('a\nb\0c',), 'a_b_c'),
    (('s' * 200, 'episode_000003', 'front'), 's' * 49 + '-episode_000003-front'),
])
def test_names_are_fit_for_paths(parts, name):
    """Words stay readable; what a path or a shell would take for something else goes."""
    assert path_name(*parts) == name


@given(st.lists(st.text(), max_size=3))
def test_any_text_gives_a_file_name(parts):
    """Below a folder, not hidden, not too long with a suffix behind it, and the same each time."""
    name = path_name(*parts)
    assert name and not set('/\\\0\n ') & set(name) and name[0] not in '.-_'
    assert len(name.encode()) <= MAX_BYTES and path_name(name) == name


@given(st.lists(st.sampled_from(['a', 'A', 'a_2', 'a_3', 'b'])))
def test_unique_names_differ_also_where_capitals_do_not_count(names):
    """The first of each name keeps it."""
    unique = unique_names(names)
    assert len({name.casefold() for name in unique}) == len(names)
    assert all(new == old or new.startswith(f'{old}_') for old, new in zip(names, unique))
    if names:
        assert unique[0] == names[0]
