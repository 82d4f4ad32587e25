"""Where images and the key may travel."""

from __future__ import annotations

import pytest

from densereward_ros.models import server_address
from densereward_ros.models.base import ModelError
from densereward_ros.models.server_address import KEY_VARIABLE, Address

KEY = 'sk-secret-0123456789'


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Neither a key nor a proxy, but for the test's own."""
    for name in (KEY_VARIABLE, 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(('url', 'why'), [
    ('', "engine is 'server', and server_url is empty"),
    ('localhost:8000', "server_url is 'localhost:8000', which is no URL of a server"),
    ('ftp://robot/v1', 'no URL of a server'),
    ('http://', 'no URL of a server'),
    ('http://robot:port/v1', 'which is no URL: Port could not be cast'),
    ('http://robot:99999/v1', 'which is no URL: Port out of range'),
    ('http://[::1/v1', 'which is no URL: Invalid IPv6'),
    ('http://ro bot/v1', 'no URL of a server'),
    ('http://robot/v1?key=5', 'with a query'),
    ('http://robot/v1\nERROR', r"server_url is 'http://robot/v1\\nERROR', which is no URL"),
])
def test_what_is_no_url_is_one_line(url, why):
    """It says what is needed."""
    with pytest.raises(ModelError, match=why) as caught:
        server_address.find(url)
    assert 'http://HOST:PORT/v1 or https://HOST/v1 is needed' in str(caught.value)
    assert '\n' not in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_shown():
    """URLs stand in logs and diagnostics."""
    with pytest.raises(ModelError) as caught:
        server_address.find(f'https://user:{KEY}@robot/v1')
    assert str(caught.value) == f'server_url holds a user or a password (a key belongs into {KEY_VARIABLE})'


@pytest.mark.parametrize(('url', 'local', 'encrypted'), [
    ('http://localhost:8000/v1/', True, False), ('http://127.0.0.1/v1', True, False),
    ('http://127.1.2.3/v1', True, False), ('http://[::1]:8000/v1', True, False),
    ('http://10.0.0.5:8000/v1', False, False), ('http://localhost.evil.example/v1', False, False),
    ('https://api.friendli.ai/serverless/v1', False, True),
])
def test_this_machine_and_others(url, local, encrypted):
    """A name that only begins like this machine's is another's."""
    address = server_address.find(url)
    assert (address.url, address.local, address.encrypted) == (url.rstrip('/'), local, encrypted)
    assert address.key == ''


def test_a_key_never_travels_unencrypted_to_another_machine(monkeypatch):
    """To this one it may, and over https to any."""
    monkeypatch.setenv(KEY_VARIABLE, f' {KEY}\n')
    assert server_address.find('https://robot/v1').key == KEY
    assert server_address.find('http://localhost:8000/v1').key == KEY
    with pytest.raises(ModelError, match='http://robot/v1 is not encrypted: the key could be read') as caught:
        server_address.find('http://robot/v1')
    assert KEY not in str(caught.value)


def test_openais_own_key_is_not_taken(monkeypatch):
    """It would go to whomever the URL names."""
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    assert server_address.find('https://robot/v1').key == ''


def test_a_key_that_cannot_be_a_header_is_refused(monkeypatch):
    """Two lines pasted at once, say; and not shown."""
    monkeypatch.setenv(KEY_VARIABLE, f'{KEY}\nX-Other: 1')
    with pytest.raises(ModelError, match='holds characters that no key has') as caught:
        server_address.find('https://robot/v1')
    assert KEY not in str(caught.value)


def test_the_key_is_shown_by_nothing():
    """repr stands in tracebacks; a server may quote it."""
    address = Address('https://robot/v1', KEY)
    assert KEY not in repr(address) + str(address) + f'{address}'
    assert address.hide_key(f'wrong key: {KEY}!') == 'wrong key: ***!'
    assert Address('https://robot/v1').hide_key('text') == 'text'


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(monkeypatch):
    """no_proxy is honoured."""
    monkeypatch.setenv('https_proxy', 'http://proxy:3128')
    monkeypatch.setenv('http_proxy', 'http://proxy:3128')
    assert Address('https://robot/v1').proxy == 'http://proxy:3128'
    assert Address('http://localhost:8000/v1').proxy is None
    monkeypatch.setenv('no_proxy', 'robot')
    assert Address('https://robot/v1').proxy is None
