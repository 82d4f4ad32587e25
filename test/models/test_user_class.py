"""A model that is one class of the user's: what is added to it, and one clear line for what is wrong."""

from __future__ import annotations

import textwrap

import pytest

from densereward_ros.models.base import Interrupted, ModelError, ModelOptions
from densereward_ros.models.opening import open_model
from densereward_ros.models.user_class import UserModel, is_meant
from densereward_ros.types import ImageError, MalformedReply, Reason, Verdict, Window

WINDOWS = [Window('', 'stack', ()), Window('', 'stack', ())]
VERDICT = Verdict(0.5, Reason.NONE)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module onto the Python path; its name is its own, as Python keeps what it imported."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str) -> str:
        header = 'from densereward_ros.types import MalformedReply, Reason, Verdict\n'
        (tmp_path / f'{name}.py').write_text(header + textwrap.dedent(source))
        return name

    return write


def refusal(model: str) -> str:
    """The line with which open_model refuses."""
    with pytest.raises(ModelError) as caught:
        open_model(ModelOptions(model=model))
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_a_class_with_two_methods_is_a_model(module):
    """It is told the options, tried on a grey window, and has everything that a model needs."""
    name = module('user_whole', """
        class Half:
            seen = []
            closed = 0

            def __init__(self, options):
                self.device = options.device

            def score(self, windows):
                self.seen.append([window.task for window in windows])
                return [Verdict(0.5, Reason.NONE) for _ in windows]

            def close(self):
                Half.closed += 1
        """)
    lines = []
    model = open_model(ModelOptions(model=f'{name}:Half', device='cuda:1'), lines.append)
    assert (model.name, model.bounded, model.corrected) == ('user_whole:Half', True, 0)
    assert lines == ['user_whole:Half is ready']
    assert model.score(WINDOWS) == [VERDICT, VERDICT]
    model.prepare(WINDOWS)
    import user_whole
    assert user_whole.Half.seen == [['warm up'], ['stack', 'stack']]
    model.close()
    model.close()
    assert user_whole.Half.closed == 1
    with pytest.raises(ModelError, match='user_whole:Half is closed'):
        model.score(WINDOWS)


class Scorer:
    """Returns or raises what it is given."""

    def __init__(self, outcome, bounded=True):
        self.outcome, self.bounded = outcome, bounded

    def score(self, windows):
        """No matter which."""
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def test_an_interrupt_holds_until_resume():
    """Before a call, and for one that is running when it comes."""
    model = UserModel('m', Scorer([VERDICT, VERDICT]))
    model.interrupt()
    with pytest.raises(Interrupted):
        model.score(WINDOWS)
    model.resume()
    assert model.score(WINDOWS) == [VERDICT, VERDICT]

    class Late:
        def score(self, windows):
            late.interrupt()
            return [VERDICT for _ in windows]

    late = UserModel('m', Late())
    with pytest.raises(Interrupted):
        late.score(WINDOWS)


@pytest.mark.parametrize(('outcome', 'line'), [
    ([VERDICT], 'm: score returned 1 outcomes for 2 windows (as many are allowed)'),
    (VERDICT, 'm: score returned Verdict (a list of Verdict or MalformedReply is allowed)'),
    (None, 'm: score returned NoneType (a list of Verdict or MalformedReply is allowed)'),
    ([0.5, VERDICT], 'm: score returned a list with float in it (Verdict and MalformedReply are allowed)'),
    ([VERDICT, Verdict(3.0, Reason.NONE, bounded=False)],
     'm: score returned a verdict with bounded False, and the class says bounded = True (the same is '
     'allowed)'),
    (KeyError('goal\nmore'), "m failed: KeyError: 'goal\\nmore'"),
    (ValueError('the reward is 2.0\nand more'), 'm failed: ValueError: the reward is 2.0'),
])
def test_what_score_may_not_return_is_one_line(outcome, line):
    """It never becomes a reward."""
    with pytest.raises(ModelError) as caught:
        UserModel('m', Scorer(outcome)).score(WINDOWS)
    assert str(caught.value) == line


@pytest.mark.parametrize('error', [ImageError('torn'), ModelError('no goal'), Interrupted()])
def test_what_a_model_may_raise_stays_as_it_is(error):
    """An image that is torn costs one camera its reward, and is no fault of the model."""
    with pytest.raises(type(error)) as caught:
        UserModel('m', Scorer(error)).score(WINDOWS)
    assert caught.value is error


def test_malformed_replies_pass():
    """A model may find no answer."""
    reply = MalformedReply('', 'no goal in sight')
    assert UserModel('m', Scorer((reply, VERDICT))).score(WINDOWS) == [reply, VERDICT]


def test_what_cannot_be_opened_is_one_line(module):
    """The module, the class, and what was wrong with them."""
    assert refusal('user_nowhere:X') == (
        'model user_nowhere:X: user_nowhere cannot be imported: ModuleNotFoundError: No module named '
        "'user_nowhere' (its folder must be on the Python path: PYTHONPATH)")
    module('user_needs', 'import user_nothing')
    assert refusal('user_needs:X') == (
        'model user_needs:X: user_needs cannot be imported: ModuleNotFoundError: No module named '
        "'user_nothing'")
    module('user_broken', 'class X\n    pass')
    assert refusal('user_broken:X').startswith(
        'model user_broken:X: user_broken cannot be imported: SyntaxError: expected')
    module('user_other', 'class A: pass\nclass B: pass\nX = 3')
    assert refusal('user_other:X') == 'model user_other:X: user_other has no class X (it has A, B)'
    assert refusal('user_other:A') == 'model user_other:A: A has no score(windows)'
    module('user_init', """
        class X:
            def __init__(self, options):
                raise OSError('goal.png is missing')

            def score(self, windows):
                pass

        class NoOptions:
            def score(self, windows):
                pass

        class Wrong:
            bounded = 'no'

            def __init__(self, options):
                pass

            def score(self, windows):
                return []
        """)
    assert refusal('user_init:X') == 'user_init:X cannot be made: OSError: goal.png is missing'
    assert refusal('user_init:NoOptions').startswith('user_init:NoOptions cannot be made: TypeError: ')
    assert refusal('user_init:Wrong') == "user_init:Wrong: bounded is 'no' (True or False are allowed)"


def test_a_score_that_is_wrong_is_told_when_it_is_opened(module):
    """Not on the first window of a robot."""
    module('user_empty', """
        class X:
            def __init__(self, options):
                pass

            def score(self, windows):
                return []
        """)
    assert refusal('user_empty:X') == (
        'user_empty:X: score returned 0 outcomes for 1 windows (as many are allowed)')


@pytest.mark.parametrize(('model', 'meant'), [
    ('value-order', True), ('pixel-difference', True), ('a.b_2:C', True), ('tabletop', False),
    ('owner/name', False), ('./a:b', False), ('/a:b', False), ('a:', False), (':b', False),
    ('qwen:4b', False), ('a:b:c', False), ('a b:c', False), ('', False)])
def test_which_names_mean_a_class(model, meant):
    """No folder with a slash, no hub id, and none of the names of servers with sizes."""
    assert is_meant(model) is meant
