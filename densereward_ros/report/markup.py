"""HTML that cannot be broken by a text in it: everything is escaped unless it was made here."""

from __future__ import annotations

import html


class Markup(str):
    """HTML that is finished: it goes into a page as it stands."""


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """One element with its content: `Markup` as it is, None left out, anything else as escaped text.

    Attributes are escaped too; a trailing underscore is dropped (class_) and others become hyphens; those
    that are None or False are left out, and True stands without a value.
    """
    opening = name + ''.join(
        f' {_attribute(key)}' if value is True else f' {_attribute(key)}="{html.escape(str(value))}"'
        for key, value in attributes.items() if value is not None and value is not False)
    if name in _VOID:
        return Markup(f'<{opening}>')
    return Markup(f'<{opening}>{join(*content)}</{name}>')


def join(*content: object) -> Markup:
    """Several pieces of content in a row; see `tag`."""
    return Markup(''.join(
        piece if isinstance(piece, Markup) else html.escape(str(piece))
        for piece in content if piece is not None))


def table(
    heads: list[str], rows: list[list[object]], numbers: set[str] = frozenset(), **attributes: object
) -> Markup:
    """A table with a header for each column; the columns in `numbers` are set as numbers.

    The end tags that HTML lets one leave out are left out: a long table is half as large without.
    """
    right = [head in numbers for head in heads]
    head = join(*(tag('th', text, scope='col', class_='n' if is_number else None)
                  for text, is_number in zip(heads, right)))
    body = ''.join(
        '<tr>' + ''.join(f'{_CELL[is_number]}{join(cell)}' for cell, is_number in zip(row, right)) + '\n'
        for row in rows)
    return tag('table', tag('thead', tag('tr', head)), tag('tbody', Markup(body)), **attributes)


_VOID = ('img', 'meta', 'br', 'col')
_CELL = {True: '<td class=n>', False: '<td>'}


def _attribute(name: str) -> str:
    return name.rstrip('_').replace('_', '-')
