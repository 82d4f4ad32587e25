"""The official openai client, made fit for a robot: bounded answers, no redirects, one key, clear errors."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from typing import TYPE_CHECKING, Any

from densereward_ros.models.base import ModelError, first_line
from densereward_ros.text import one_line

if TYPE_CHECKING:
    from densereward_ros.models.server_address import Address

# A verdict with its probabilities is a few kilobytes; a server that sends more means something else.
MAX_ANSWER = 1_000_000  # bytes
CONNECT_S = 5.0
_MAX_SHOWN = 200
_CONNECTIONS = 32


class AnswerTooLarge(Exception):
    """An answer of more bytes than a verdict can have, or compressed, which hides how many it has."""


def require_openai() -> None:
    """Raise ModelError where the client is not installed."""
    if importlib.util.find_spec('openai') is None:
        raise ModelError(
            f"openai not installed for {sys.executable}: engine 'server' needs it; install with "
            f"'{sys.executable} -m pip install openai' (in a virtual environment; see the README)"
        )


def make_client(address: Address) -> Any:
    """An openai.AsyncOpenAI for one event loop. Certificates are checked; it neither retries nor logs."""
    import openai

    # The library that this release of the client stands on: httpx, or httpx2 from openai 3 on.
    base = openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition('.')[0]
    http = importlib.import_module(base)

    class Bounded(http.AsyncByteStream):
        """A body that ends with an error when it is too long."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self):
            size = 0
            async for piece in self._stream:
                size += len(piece)
                if size > MAX_ANSWER:
                    raise AnswerTooLarge(f'an answer of more than {MAX_ANSWER} bytes')
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(http.AsyncHTTPTransport):
        """Sends the key that is meant for this server, and nothing that the environment has for OpenAI."""

        async def handle_async_request(self, request: Any) -> Any:
            for name in ('authorization', 'openai-organization', 'openai-project'):
                if name in request.headers:
                    del request.headers[name]
            if address.key:
                request.headers['authorization'] = f'Bearer {address.key}'
            request.headers['accept-encoding'] = 'identity'
            response = await super().handle_async_request(request)
            if response.headers.get('content-encoding', 'identity') != 'identity':
                await response.aclose()
                raise AnswerTooLarge('a compressed answer, which nobody asked for')
            return http.Response(
                response.status_code, headers=response.headers, stream=Bounded(response.stream),
                extensions=response.extensions)

    transport = Transport(proxy=address.proxy, limits=http.Limits(max_connections=_CONNECTIONS))
    return openai.AsyncOpenAI(
        api_key='none',  # the transport knows better
        base_url=address.url,
        max_retries=0,
        # The caller bounds the whole; an unreachable host should be noticed earlier.
        timeout=http.Timeout(None, connect=CONNECT_S),
        http_client=http.AsyncClient(transport=transport, follow_redirects=False),
    )


class Fault(Exception):
    """Why there is no answer, in one line. status: of HTTP, 0 where no answer came.

    lasting: whether waiting cannot mend it: the key, the name of the model or the URL is wrong.
    wish_s: seconds after which the server wants to be asked again, 0.0 where it does not say.
    """

    def __init__(self, text: str, status: int = 0, wish_s: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.wish_s = wish_s

    @property
    def lasting(self) -> bool:
        """See the class."""
        return self.status in (301, 302, 303, 307, 308, 401, 403, 404, 405)

    @property
    def passing(self) -> bool:
        """Whether the same request may well be answered a moment later."""
        return self.status in (0, 408, 409, 425, 429) or self.status >= 500

    @property
    def about_request(self) -> bool:
        """Whether the server did not like what was asked for."""
        return self.status in (400, 422)


def fault_of(error: BaseException, address: Address) -> Fault:
    """What an error of the client says, safe for a log: without the key, in one line."""
    import openai

    if isinstance(error, openai.APIStatusError):
        response = error.response
        text = f'{address.url} answered {error.status_code}'
        if 300 <= error.status_code < 400:
            to = one_line(address.hide_key(response.headers.get('location', '')), _MAX_SHOWN)
            return Fault(
                f"{text}, a redirect to '{to}', which is not followed: set server_url to where the server is",
                error.status_code)
        if error.status_code in (401, 403):
            what = 'the key was refused' if address.key else 'it wants a key'
            text += f' ({what}; a key is read from the environment variable DENSEREWARD_SERVER_KEY)'
        said = one_line(address.hide_key(_said(error.body)), _MAX_SHOWN)
        return Fault(f'{text}: {said}' if said else text, error.status_code, _wish_s(response.headers))
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, AnswerTooLarge):
            return Fault(f'{address.url} sent {cause}')
    if isinstance(error, openai.APITimeoutError):
        return Fault(f'{address.url} cannot be reached: no connection within {CONNECT_S:g} s')
    if isinstance(error, openai.APIConnectionError):
        cause = causes[:2][-1]
        connected = not type(cause).__name__.startswith('Connect')
        what = 'broke the connection off' if connected else 'cannot be reached'
        return Fault(f'{address.url} {what}: {one_line(address.hide_key(first_line(cause)), _MAX_SHOWN)}')
    return Fault(f'{address.url}: {one_line(address.hide_key(first_line(error)), _MAX_SHOWN)}')


def _said(body: Any) -> str:
    """What a server says of an error, in the several places where servers say it."""
    if isinstance(body, dict):
        inner = body.get('error', body)
        if isinstance(inner, dict):
            body = next((inner[key] for key in ('message', 'detail', 'msg') if inner.get(key)), inner)
        else:
            body = inner
    if body is None:
        return ''
    return ' '.join((body if isinstance(body, str) else json.dumps(body, default=str)).split())


def _wish_s(headers: Any) -> float:
    try:
        return max(0.0, float(headers.get('retry-after', '')))
    except ValueError:
        return 0.0


def _causes(error: BaseException) -> list[BaseException]:
    """An error, what caused it, what caused that, and so on."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    return chain
