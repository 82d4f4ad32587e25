"""A reward model on an OpenAI-compatible server: vLLM, SGLang, transformers serve, or a hosted endpoint."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import random
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Coroutine

import numpy as np

from densereward_ros.models import served_files, server_address
from densereward_ros.models.base import Interrupted, ModelError, Unanswered
from densereward_ros.models.circuit import Circuit, State
from densereward_ros.models.server_client import Fault, fault_of, make_client, require_openai
from densereward_ros.models.server_reply import NoCompletion, read_answer
from densereward_ros.models.server_request import Pictures, Settings, chat, chat_of, settings
from densereward_ros.text import one_line
from densereward_ros.types import FRAMES_PER_WINDOW, Frame, MalformedReply, Verdict, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from densereward_ros.models.base import ModelOptions
    from densereward_ros.models.served_files import ServedFiles
    from densereward_ros.models.server_address import Address

# At open: a server that loads the model on the first request takes its time.
_OPENING_S = 60.0
# Later on, when it has failed: longer than a tick, for one that is slow to come back or busy with others.
_MEETING_AGAIN_S = 10.0
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.05, 1.0
_CLOSING_S = 2.0
_GREY_SIDE = 224  # pixels
_SHOWN_MODELS = 5
_KINDS = {'vllm': 'vLLM', 'sglang': 'SGLang'}


def open_server(options: ModelOptions, progress: Callable[[str], None]) -> ServerModel:
    """A model on the server of options.server_url.

    A server that cannot be reached, or is not ready, is a warning: the robot may well be up before its
    server, and the circuit asks again. What waiting cannot mend raises ModelError: no URL, a key that is
    refused, a model that is not served.
    """
    address = server_address.find(options.server_url)
    require_openai()
    files = served_files.read(options, progress)
    if not address.local:
        progress(f'images are sent to {address.url}')
        if not address.encrypted:
            progress(f'warning: {address.url} is not encrypted: images can be seen on the way')
    model = ServerModel(options, address, files, progress)
    try:
        model.meet()
    except BaseException:
        model.close()
        raise
    return model


class ServerModel:
    """A RewardModel that asks a server, with all windows of a score() at once.

    Whatever the server does, score() ends within server_timeout. After three that failed in a row the
    server is left alone for seconds, in which score() raises ModelError at once (see Circuit); then its
    models and its kind are looked up again, before it gets windows. That goes on when a score() ends.
    """

    bounded = True
    corrected = 0  # the server holds replies to the format, or nobody does

    def __init__(
        self, options: ModelOptions, address: Address, files: ServedFiles, progress: Callable[[str], None]
    ) -> None:
        self.name = options.model
        self.circuit = Circuit()
        self._options = options
        self._address = address
        self._system_prompt = files.system_prompt
        self._pictures = Pictures(options, files)
        self._progress = progress
        self._kind = ''
        self._version = ''
        self._settings: Settings | None = None
        self._requests = 0
        self._faults = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()  # of _running, which interrupt() cancels
        self._running: concurrent.futures.Future | None = None
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name='server', daemon=True)
        self._thread.start()
        self._meeting: asyncio.Task | None = None  # in the loop, as is
        self._client: Any = None  # made by the loop that it lives in

    def score(self, windows: Sequence[Window]) -> list[Verdict | MalformedReply]:
        """See RewardModel.score."""
        deadline = time.monotonic() + self._options.server_timeout
        if self._closed:
            raise ModelError(f'{self.name} is closed')
        if self._stop.is_set():
            raise Interrupted
        chats = [chat_of(window, self._system_prompt, self._pictures) for window in windows]
        if not chats:
            return []
        if self.circuit.state is State.OPEN:
            raise ModelError(f'{self.circuit.last_error} (asked again in {self.circuit.rest_s:.1f} s)')
        outcomes = self._wait_for(self._answers(chats, deadline))
        faults = [outcome for outcome in outcomes if isinstance(outcome, Fault)]
        if len(faults) < len(outcomes):
            self.circuit.succeeded()
        else:
            if faults[0].status != _STILL_MEETING:
                self.circuit.failed(str(faults[0]), wish_s=max(fault.wish_s for fault in faults))
            raise ModelError(str(faults[0]))
        if faults:
            self.circuit.last_error = str(faults[0])
            raise Unanswered(
                str(faults[0]), [None if isinstance(outcome, Fault) else outcome for outcome in outcomes])
        return outcomes

    def prepare(self, windows: Sequence[Window]) -> None:
        """See RewardModel.prepare: the frames that are known were encoded with the window before."""

    def interrupt(self) -> None:
        """See RewardModel.interrupt. A running score() ends at once, and its connections are closed."""
        self._stop.set()
        with self._lock:
            if self._running is not None:
                self._running.cancel()

    def resume(self) -> None:
        """See RewardModel.resume."""
        self._stop.clear()

    def close(self) -> None:
        """See RewardModel.close."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(_CLOSING_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING_S)
        if not self._thread.is_alive():
            self._loop.close()

    def status(self) -> dict[str, str]:
        """What diagnostics show; may be read from any thread."""
        asked = self._settings
        return {
            'server': self._address.url,
            'server kind': f'{_KINDS.get(self._kind, "")} {self._version}'.strip() or 'unknown',
            'server circuit': self.circuit.state.value,
            'server requests': str(self._requests),
            'server requests without answer': str(self._faults),
            'server keeps the format': 'unknown' if asked is None else str(asked.constrained).lower(),
            'last server error': self.circuit.last_error,
        }

    def meet(self) -> None:
        """Look up what the server is, once. Raises ModelError for what waiting cannot mend."""
        try:
            self._wait_for(self._within(_OPENING_S, self._meet()))
        except Fault as fault:
            if fault.lasting:
                raise ModelError(str(fault)) from None
            self.circuit.failed(str(fault), at_once=True, wish_s=fault.wish_s)
            self._progress(f'warning: no reward until the server answers, which is tried again: {fault}')

    # On the calling thread

    def _wait_for(self, work: Coroutine) -> Any:
        """Run it in the loop. Raises Interrupted at once when interrupt() comes."""
        with self._lock:
            running = self._running = asyncio.run_coroutine_threadsafe(work, self._loop)
        if self._stop.is_set():
            running.cancel()
        try:
            return running.result()
        except concurrent.futures.CancelledError:
            raise Interrupted from None
        finally:
            with self._lock:
                self._running = None

    # In the loop

    async def _answers(self, chats: list[list[dict]], deadline: float) -> list:
        """For each chat a verdict, a malformed reply, or a Fault."""
        if self.circuit.state is not State.CLOSED:
            try:
                await self._meet_again(deadline)
            except Fault as fault:
                return [fault] * len(chats)
        return await asyncio.gather(*(self._answer(messages, deadline) for messages in chats))

    async def _answer(self, messages: list[dict], deadline: float) -> Verdict | MalformedReply | Fault:
        """Ask until there is an answer, or no time left, or no hope."""
        pause, fault = _FIRST_RETRY_S, None
        while True:
            try:
                return await self._within(
                    deadline - time.monotonic(), self._ask(messages, self._settings))
            except Fault as error:
                # A reply that took too long says less than what went wrong before it.
                fault = fault if fault and error.status == _TIMED_OUT else error
            wait = max(pause * random.uniform(0.5, 1.5), fault.wish_s)
            if not fault.passing or time.monotonic() + wait >= deadline:
                return fault
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_RETRY_S)

    async def _within(self, seconds: float, work: Coroutine) -> Any:
        """Raises Fault when it takes longer."""
        try:
            return await asyncio.wait_for(work, max(seconds, 0.0))
        except asyncio.TimeoutError:
            raise Fault(
                f'{self._address.url} gave no answer in time (server_timeout is '
                f'{self._options.server_timeout:g} s)', _TIMED_OUT) from None

    async def _ask(self, messages: list[dict], asked: Settings) -> Verdict | MalformedReply:
        """One request. Raises Fault."""
        self._requests += 1
        try:
            raw = await self._connected().chat.completions.with_raw_response.create(
                model=self.name, messages=messages, **asked.standard, extra_body=asked.extra or None)
            return read_answer(json.loads(raw.http_response.content))
        except (NoCompletion, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            self._faults += 1
            what = str(error) if isinstance(error, NoCompletion) else 'no JSON'
            what = one_line(self._address.hide_key(what), 200)
            raise Fault(f'{self._address.url} sent no chat completion, but {what}') from None
        except asyncio.CancelledError:
            self._faults += 1
            raise
        except Exception as error:  # of the client, or of the HTTP library below it
            self._faults += 1
            raise fault_of(error, self._address) from None

    async def _ask_for_sure(self, messages: list[dict], asked: Settings) -> None:
        """As _ask, and once more without an answer: a server may hang up behind an error that it sent."""
        try:
            await self._ask(messages, asked)
        except Fault as fault:
            if fault.status:
                raise
            await self._ask(messages, asked)

    async def _meet(self) -> None:
        """Find out the kind of server, and what can be asked of it, with a grey window. Raises Fault."""
        served, owner = await self._models()
        self._kind = owner if owner in _KINDS else ''
        self._version = await self._vllm_version() if self._kind == 'vllm' else ''
        grey = np.full((_GREY_SIDE, _GREY_SIDE, 3), 127, np.uint8)
        frame = Frame(0, 0, lambda: grey)
        messages = chat(self._system_prompt, [self._pictures.url(frame)] * FRAMES_PER_WINDOW, 'warm up')
        wished = settings(self._kind, self._version, self._options.constrain, self._options.max_new_tokens)
        for asked in wished:
            try:
                await self._ask_for_sure(messages, asked)
            except Fault as fault:
                if fault.about_request and asked is not wished[-1]:
                    continue
                raise self._explained(fault, served) from None
            self._settings = asked
            break
        self._progress(f'{self.name} is ready on {self._address.url}: {self._described(wished[0])}')

    async def _meet_again(self, deadline: float) -> None:
        """Returns when it has been met. Raises Fault; at the deadline as well, and the meeting goes on."""
        if self._meeting is None:
            patience = max(_MEETING_AGAIN_S, self._options.server_timeout)
            self._meeting = asyncio.ensure_future(self._within(patience, self._meet()))
        done, _ = await asyncio.wait([self._meeting], timeout=max(deadline - time.monotonic(), 0.0))
        if not done:
            raise Fault(f'{self._address.url} is asked whether it is there again', _STILL_MEETING)
        meeting, self._meeting = self._meeting, None
        meeting.result()

    async def _hang_up(self) -> None:
        if self._meeting is not None:
            self._meeting.cancel()
            with contextlib.suppress(asyncio.CancelledError, Fault):
                await self._meeting
        if self._client is not None:
            await self._client.close()

    async def _models(self) -> tuple[list[str], str]:
        """The names of the models that the server lists, and who owns them; nothing where it lists none."""
        try:
            raw = await self._connected().models.with_raw_response.list()
            data = json.loads(raw.http_response.content)['data']
            return [str(model['id']) for model in data], str(data[0].get('owned_by')) if data else ''
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return [], ''  # a garbled list is no reason not to ask for a reply
        except Exception as error:
            fault = fault_of(error, self._address)
            # transformers serve answers 500 where it has no cache to list, and others have no list at all.
            if fault.status in (404, 405) or fault.status >= 500:
                return [], ''
            raise fault from None

    async def _vllm_version(self) -> str:
        """'' where it does not tell."""
        try:
            root = self._address.url.removesuffix('/v1')
            answer = await self._connected().get(f'{root}/version', cast_to=object)
            return one_line(str(answer['version']), 40)
        except Exception:  # an older one has no such page, a proxy in between may hide it
            return ''

    def _explained(self, fault: Fault, served: list[str]) -> Fault:
        """A model that the server does not have is the likeliest cause, where it lists others."""
        if not served or self.name in served:
            return fault
        names = ', '.join(one_line(name, 100) for name in served[:_SHOWN_MODELS])
        more = ', ...' if len(served) > _SHOWN_MODELS else ''
        return Fault(
            f"{self._address.url} does not serve the model '{self.name}' (it serves {names}{more}: set model "
            'to one of them)', 404)

    def _described(self, best: Settings) -> str:
        asked = self._settings
        kind = f'{_KINDS[self._kind]} {self._version}'.strip() if self._kind else 'a server of unknown kind'
        kept = 'are kept' if asked.constrained else 'cannot be kept' if best.constrained else 'are not kept'
        asked_for = 'are asked for' if asked.probabilities else 'it does not tell'
        return f'{kind}; replies {kept} to the format, probabilities of the words {asked_for}'

    def _connected(self) -> Any:
        if self._client is None:
            self._client = make_client(self._address)
        return self._client


_TIMED_OUT = 504  # as a proxy would say it
_STILL_MEETING = 102
