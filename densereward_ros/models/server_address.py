"""Where a server is, and whether images and a key may travel there."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from densereward_ros.models.base import ModelError
from densereward_ros.text import one_line

# Not OPENAI_API_KEY: that one lies in many a shell for OpenAI, and would go to whomever server_url names.
KEY_VARIABLE = 'DENSEREWARD_SERVER_KEY'


@dataclass(frozen=True)
class Address:
    """url: of the API, such as http://localhost:8000/v1, without a slash at the end. key: '' for none."""

    url: str
    key: str = ''

    @property
    def local(self) -> bool:
        """Whether it is this very machine."""
        host = urlsplit(self.url).hostname or ''
        try:
            return host == 'localhost' or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def encrypted(self) -> bool:
        """Whether what is sent can be read on the way."""
        return self.url.startswith('https://')

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment names for it."""
        parts = urlsplit(self.url)
        if self.local or urllib.request.proxy_bypass(parts.hostname or ''):
            return None
        proxies = urllib.request.getproxies()
        return proxies.get(parts.scheme) or proxies.get('all')

    def hide_key(self, text: str) -> str:
        """A text from the server, which may quote the key."""
        return text.replace(self.key, '***') if self.key else text

    def __repr__(self) -> str:
        return f'Address({self.url!r})'


def check_url(url: str) -> None:
    """Raise ModelError for what is not the URL of an API."""
    shown = one_line(url)
    wanted = 'http://HOST:PORT/v1 or https://HOST/v1 is needed'
    if not url:
        raise ModelError(f"engine is 'server', and server_url is empty ({wanted})")
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ModelError(f"server_url is '{shown}', which is no URL: {error} ({wanted})") from None
    if '@' in parts.netloc:  # not shown: it would be a password
        raise ModelError(f'server_url holds a user or a password (a key belongs into {KEY_VARIABLE})')
    plain = url.isascii() and url.isprintable() and ' ' not in url
    if parts.scheme not in ('http', 'https') or not parts.hostname or not port_is_valid or not plain:
        raise ModelError(f"server_url is '{shown}', which is no URL of a server ({wanted})")
    if parts.query or parts.fragment:
        raise ModelError(f"server_url is '{shown}', with a query or a fragment ({wanted})")


def find(url: str) -> Address:
    """The address of a URL, with the key of the environment.

    Raises ModelError for no URL, and for a key that would travel unencrypted to another machine.
    """
    check_url(url)
    address = Address(url.rstrip('/'), os.environ.get(KEY_VARIABLE, '').strip())
    if not (address.key.isascii() and address.key.isprintable()):
        raise ModelError(f'{KEY_VARIABLE} holds characters that no key has (printable ASCII is needed)')
    if address.key and not address.encrypted and not address.local:
        raise ModelError(
            f'{KEY_VARIABLE} is set, and {address.url} is not encrypted: the key could be read on the way '
            '(use https, a tunnel to localhost, or a server without a key)'
        )
    return address
