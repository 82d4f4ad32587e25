"""HTML from texts: whatever they hold, they are read back as they were."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from densereward_ros.report.markup import Markup, join, table, tag

# What a parser of HTML changes by the standard, and no text of one line has.
text = st.text(st.characters(blacklist_categories=('Cs', 'Cc')))


class Reader(HTMLParser):
    """Takes HTML apart again."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements, self.text = [], ''
        self.feed(html)
        self.close()

    def handle_starttag(self, name, attributes):
        """One more element."""
        self.elements.append((name, dict(attributes)))

    def handle_data(self, data):
        """One more piece of text."""
        self.text += data


@given(text, text)
def test_texts_stay_texts(content, value):
    """As content and as an attribute, with brackets, quotes and entities in them."""
    found = Reader(tag('p', content, title=value))
    assert found.elements == [('p', {'title': value})]
    assert found.text == content


def test_what_is_finished_is_not_escaped_again():
    """Elements nest; None is nothing, a number is its digits, and true attributes stand alone."""
    made = tag('p', tag('b', '<'), None, 3, Markup('&ensp;'), class_='a b', open=True, id=None, hidden=False)
    assert made == '<p class="a b" open><b>&lt;</b>3&ensp;</p>'
    assert tag('meta', http_equiv='x') == '<meta http-equiv="x">'
    assert join('<', tag('i')) == '&lt;<i></i>'


def test_a_table_has_headers_and_numbers():
    """Every header has its scope; cells of numbers have their class; texts are escaped."""
    made = Reader(table(['name', 'reward'], [['<a>', '0.5'], [tag('b', 'x'), '1']], {'reward'}))
    names = [name for name, _ in made.elements]
    assert names == ['table', 'thead', 'tr', 'th', 'th', 'tbody', 'tr', 'td', 'td', 'tr', 'td', 'b', 'td']
    assert [attributes.get('scope') for name, attributes in made.elements if name == 'th'] == ['col', 'col']
    assert [attributes.get('class') for name, attributes in made.elements if name == 'td'] == [
        None, 'n', None, 'n']
    assert '<a>' in made.text
