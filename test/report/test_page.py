"""The report in a real browser: what can be seen, at any width, by day and night; nothing is fetched."""

from __future__ import annotations

import http.server
import math
import threading
from pathlib import Path

import numpy as np
import pytest

from browser import NAMES, Browser, find_browser
from densereward_ros.recordings.base import RecordingError
from densereward_ros.recordings.episode import LabelledFailure, Labels
from densereward_ros.report import writing
from densereward_ros.report.writing import write_report
from densereward_ros.results.rows import Results
from densereward_ros.types import FAILURES, Frame, Reason, Rule, Window
from made_scores import episode, rising

SCRIPT = '<script>alert("x")</script> & \'quotes\' "and more"'
RUN = {
    'model': 'tabletop', 'model_files': {'model.safetensors': 'ab' * 32}, 'bounded': True, 'engine': 'fast',
    'options': {'frame_interval': 0.2, 'task': SCRIPT}, 'version': '1.2.3', 'inputs': {'inputs': [SCRIPT]}}
GONE = 'recordings/gone.mp4: no such file or folder'
LABELS = Labels(
    False, (LabelledFailure(3.0, Reason.MISS), LabelledFailure(3.3)), ((0.0, 0.0), (4.0, 0.4), (12.0, 1.0)))
EPISODES = (
    episode('good', rising(60), labels=Labels(True, (), ((0.0, 0.0), (12.0, 1.0))), targets=True),
    episode('many events', [0.5 + 0.4 * math.sin(i / 9) for i in range(200)],
            {i: FAILURES[i // 9 % 5] for i in range(20, 190, 9)}, labels=LABELS),
    episode('flicker', [None if i % 7 == 3 else 0.4 for i in range(60)], {30: Reason.FAILURE},
            Rule.REWARD_DROP, segments=(25, 45)),
    episode('gone', [None] * 40),
    episode('no window', []),
    episode('one window', [0.25]),
    episode('a/' + 'long_name_without_any_space_' * 6, rising(20), {19: Reason.SMOOTH},
            task=SCRIPT + ' and it goes on' * 20, camera='/a/very/deep/namespace/of/a/camera' * 3),
    episode('<img src=x onerror=alert(1)>', rising(10), {4: Reason.FALL}, task='"><b>bold</b>'),
)
UNBOUNDED = tuple(
    episode(f'pair {k}', [3 * math.sin(i / 9 + k) - 7 for i in range(50)], {30: Reason.FAILURE},
            Rule.REWARD_DROP, words=False) for k in range(2)) + (
    episode('constant', [-12345.678] * 20, words=False),)
FAILED = (('broken.mp4', f'damaged {SCRIPT}'), (SCRIPT, 'x' * 300))

# All that is folded away, and all that is not drawn while it is out of sight.
UNFOLD = """
document.querySelectorAll('details').forEach(each => each.open = true);
document.querySelectorAll('.episode').forEach(each => each.style.contentVisibility = 'visible');
"""


def windows(scored):
    """Windows of one colour each; that of the 'gone' episode cannot be had any more."""
    if scored.name == 'gone':
        raise RecordingError(GONE)
    for i, frame in enumerate(scored.frames):
        image = np.full((96, 128, 3), (i % 256, 90, 160), np.uint8)
        yield Window('', '', (Frame(frame.stamp_ns, 0, lambda image=image: image),), frame.segment)


@pytest.fixture(scope='module')
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports on hard cases, on a model without words and scale, and on nothing at all."""
    folder = tmp_path_factory.mktemp('pages')
    cases = {
        'hard': Results(EPISODES, RUN, FAILED), 'unbounded': Results(UNBOUNDED, {**RUN, 'bounded': False}),
        'empty': Results(())}
    with pytest.MonkeyPatch.context() as patch:  # the pictures beside the page take the most time
        patch.setattr(writing, 'draw_timeline', lambda timeline, file: file.write_bytes(b'picture'))
        return {
            name: write_report(results, folder / name, f'{name} <b>', windows, video=False).page
            for name, results in cases.items()}


@pytest.fixture(scope='module')
def browser():
    """A browser, or the reason why there is none."""
    program = find_browser()
    if program is None:
        pytest.skip(f'no browser to look at the page with: none of {", ".join(NAMES)} is on the PATH')
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.mark.parametrize('width', [1280, 980, 720, 400])
@pytest.mark.parametrize('name', ['hard', 'unbounded', 'empty'])
def test_nothing_is_wider_than_the_window(browser, pages, name, width):
    """Not the page, and nothing in it that would be cut off: also with every table unfolded."""
    browser.open(pages[name], width)
    browser.evaluate(UNFOLD)
    wide = browser.evaluate("""
        [...document.querySelectorAll('body *')].filter(each => {
          const box = each.getBoundingClientRect();
          return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5);
        }).map(each => each.tagName + ' ' + each.className + ' ' + each.textContent.slice(0, 40))""")
    assert wide == []
    assert browser.evaluate('document.documentElement.scrollWidth') <= width
    names = "[...document.querySelectorAll('.list td:nth-child(2)')].map(each => each.clientWidth)"
    assert all(room >= 130 for room in browser.evaluate(names))
    # The last word of a time axis may stand out a little; there is room for it.
    cut = browser.evaluate("""
        [...document.querySelectorAll('.body > *, .story > *, td, figure')].filter(
          each => each.scrollWidth > each.clientWidth + (each.querySelector('.axis') ? 20 : 1)
        ).map(each => each.tagName + ' ' + each.className + ' ' + each.textContent.slice(0, 40))""")
    assert cut == []


def test_the_pictures_are_there(browser, pages):
    """Every one is decoded, and described in words; those at an event are marked."""
    browser.open(pages['hard'], 1280)
    browser.evaluate(UNFOLD)
    browser.evaluate('Promise.all([...document.images].map(each => each.decode()))')
    sizes = browser.evaluate('[...document.images].map(each => each.naturalWidth)')
    assert sizes == [128] * (4 * 8 + 8 + 1)  # five long episodes of which one is gone, and one window
    assert browser.evaluate('[...document.images].every(each => /^Camera image at [0-9.]+ s/.test(each.alt))')
    marked = "[...document.querySelectorAll('#e3 .strip .at')].map(each => each.innerText)"
    assert browser.evaluate(marked) == ['6.4 s failure']


@pytest.mark.parametrize('name', ['hard', 'unbounded', 'empty'])
def test_nothing_is_requested(browser, pages, name):
    """Neither by the page itself nor by anything in it, and the browser has nothing to complain of."""
    browser.open(pages[name], 1280)
    browser.evaluate(UNFOLD)
    browser.screenshot(pages[name].parent / 'shot.png')
    asked = [url for url in browser.requests if not url.startswith('data:')]
    assert asked == [pages[name].as_uri()]
    assert browser.console == []


def test_the_policy_forbids_what_somebody_might_slip_in(browser, pages):
    """With a server that listens: an image and a request of a script that got in never reach it."""
    reached = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            reached.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f'http://127.0.0.1:{server.server_port}'
        tries = f"""new Promise(done => {{
            const image = new Image();
            image.onload = () => done('loaded'); image.onerror = () => done('refused');
            image.src = '{address}/image'; document.body.append(image);
        }})"""
        browser.open(pages['hard'], 1280)
        assert browser.evaluate(tries) == 'refused'
        fetched = f"fetch('{address}/fetch', {{mode: 'no-cors'}}).then(() => 'ok', () => 'refused')"
        assert browser.evaluate(fetched) == 'refused'
        browser.evaluate(
            """document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.ran = 1">')""")
        assert browser.evaluate('window.ran === undefined')
        assert reached == []
        assert sum('Content Security Policy' in line for line in browser.console) >= 2
    finally:
        server.shutdown()
        server.server_close()


def test_texts_are_texts(browser, pages):
    """Names, tasks and errors with markup in them are shown as they are, and are nothing else."""
    browser.open(pages['hard'], 1280)
    browser.evaluate(UNFOLD)
    assert browser.evaluate("document.querySelectorAll('script, b b, iframe, object, link').length") == 0
    assert browser.evaluate("document.querySelectorAll('[onerror], img[src=x]').length") == 0
    assert browser.evaluate('document.title') == 'hard <b> · densereward'
    text = browser.evaluate('document.body.textContent')
    for shown in (SCRIPT, '<img src=x onerror=alert(1)>', '"><b>bold</b>', f'damaged {SCRIPT}', GONE):
        assert shown in text


@pytest.mark.parametrize('dark', [False, True])
def test_every_text_can_be_read(browser, pages, dark):
    """A contrast of 4.5 to 1 by day and by night, as WCAG 2 reckons it; at night the page is dark."""
    browser.open(pages['hard'], 1280, dark=dark)
    browser.evaluate(UNFOLD)
    pairs = browser.evaluate("""
        [...new Set([...document.querySelectorAll('body *')].filter(
          each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())
        ).map(each => {
          let behind = each;
          const colour = node => getComputedStyle(node).backgroundColor;
          while (behind.parentElement && colour(behind) === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
          return getComputedStyle(each).color + '|' + colour(behind);
        }))].map(each => each.split('|').map(colour => colour.match(/[0-9.]+/g).map(Number)))""")
    assert len(pairs) >= 5
    for text, behind in pairs:
        assert contrast(text[:3], behind[:3]) >= 4.5, (text, behind)
    background = browser.evaluate('getComputedStyle(document.body).backgroundColor')
    assert background == ('rgb(17, 22, 28)' if dark else 'rgb(255, 255, 255)')


def contrast(one, other) -> float:
    """The contrast ratio of two colours, 0 to 255 a channel."""
    def luminance(colour) -> float:
        red, green, blue = (
            value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
            for value in (channel / 255 for channel in colour))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_tables_and_drawings_explain_themselves(browser, pages):
    """Each column has a header, each drawing is told in words, and no drawing is read out besides."""
    browser.open(pages['hard'], 1280)
    assert browser.evaluate("[...document.querySelectorAll('table')].every(each => "
                            "each.tHead.rows[0].cells.length === each.tBodies[0].rows[0].cells.length)")
    assert browser.evaluate("[...document.querySelectorAll('th')].every(each => each.scope === 'col')")
    assert browser.evaluate("[...document.querySelectorAll('svg')].every(each => each.ariaHidden === 'true')")
    told = browser.evaluate("""document.querySelector('#e3 [role=img]').ariaLabel""")
    assert told == ('Reward over 12.2 s: first 0.400, lowest 0.400, highest 0.400, last 0.400. '
                    'Failure events: failure at 6.4 s.')
    assert browser.evaluate('document.documentElement.lang') == 'en'


def test_on_paper_every_episode_is_unfolded(browser, pages):
    """In light colours, whatever the screen has, and without the long tables."""
    browser.open(pages['hard'], 800, dark=True)
    browser.call('Emulation.setEmulatedMedia', media='print', features=[
        {'name': 'prefers-color-scheme', 'value': 'dark'}])
    assert browser.evaluate(
        "[...document.querySelectorAll('.episode .body')].every(each => each.offsetHeight > 40)")
    assert browser.evaluate("document.querySelector('.verdicts').offsetHeight") == 0
    assert browser.evaluate('getComputedStyle(document.body).backgroundColor') == 'rgb(255, 255, 255)'
    browser.call('Emulation.setEmulatedMedia', media='', features=[])
    assert browser.print(pages['hard'].parent / 'page.pdf').read_bytes().startswith(b'%PDF')


def test_links_lead_somewhere(browser, pages):
    """Those within the page, and those to the pictures beside it, whatever the episodes are called."""
    browser.open(pages['hard'], 1280)
    links = browser.evaluate("[...document.querySelectorAll('a')].map(each => each.getAttribute('href'))")
    assert len([link for link in links if link.endswith('.png')]) == 7  # 'no window' has none
    for link in links:
        if link.startswith('#'):
            assert browser.evaluate(f"document.querySelector('{link}') !== null"), link
        else:
            assert browser.evaluate(f"new URL('{link}', location).protocol") == 'file:'
            path = browser.evaluate(f"decodeURIComponent(new URL('{link}', location).pathname)")
            assert Path(path).is_file()


def test_a_link_unfolds_its_episode(browser, pages):
    """Of eight episodes all are folded at first; following the link shows one, its name at the top."""
    browser.open(pages['hard'], 1280)
    unfolded = "[...document.querySelectorAll('.episode')].map(each => each.open)"
    assert not any(browser.evaluate(unfolded))
    browser.evaluate("document.querySelector('.list a[href=\\'#e2\\']').click()")
    assert browser.evaluate(unfolded) == [i == 1 for i in range(8)]
    top = browser.evaluate("document.querySelectorAll('.episode')[1].getBoundingClientRect().top")
    assert 0 <= top < 60


def test_a_model_without_words_and_scale(browser, pages):
    """The axis has the rewards' own range, and nothing is said of reasons."""
    browser.open(pages['unbounded'], 1280)
    axis = browser.evaluate("[...document.querySelectorAll('#e1 .y')].map(each => each.innerText)")
    assert axis == ['−9', '−8', '−7', '−6', '−5']
    heads = "[...document.querySelectorAll('#e1 .verdicts th')].map(each => each.textContent)"
    assert browser.evaluate(heads) == ['frame', 'seconds', 'reward', 'reason']  # the event is told there
    panels = "[...document.querySelectorAll('h3')].map(each => each.textContent)"
    assert browser.evaluate(panels) == ['Rewards']
    assert 'drop' in browser.evaluate("document.querySelector('#e1 .flags').innerText")


def test_marks_and_words_do_not_overlap(browser, pages):
    """Above the curve, where there are many events, on wide and on narrow pages."""
    for width in (1280, 400):
        browser.open(pages['hard'], width)
        browser.evaluate(UNFOLD)
        boxes = browser.evaluate("""
            [...document.querySelectorAll('#e2 .flags:not(.known) .flag')].map(each => {
              const box = each.getBoundingClientRect(); return [box.left, box.right];
            }).filter(box => box[1] > box[0])""")
        assert len(boxes) >= 8
        assert all(one[1] <= other[0] + 6 for one, other in zip(boxes, boxes[1:]))
