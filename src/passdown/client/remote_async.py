"""The same calls for programs that await: HTTP through ``httpx``, which the extra ``client`` installs.

It shares the messages and the policy of repetition with the synchronous caller; only the waiting differs.

Public operations: :class:`AsyncHttp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from secrets import token_hex
from types import TracebackType
from typing import TypeVar

import httpx

from passdown.client.messages import MAX_ANSWER, Request, answer_of, checked_token, place_of, request_of
from passdown.client.remote import TIMEOUT
from passdown.client.retries import Retries, retry_after
from passdown.kernel.errors import PassdownError
from passdown.kernel.operations import Op

Q = TypeVar("Q")
A = TypeVar("A")


class AsyncHttp:
    """Calls a server from one event loop. Close it, or use ``async with``."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = TIMEOUT,
        retries: Retries | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._place = place_of(url)
        self._token = checked_token(token)
        self._retries = retries or Retries()
        self._pause = pause
        # Straight to the server, as the synchronous caller: a token is not shown to a proxy that an environment names.
        self._client = httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False)

    async def __call__(self, op: Op[Q, A], ask: Q) -> A:
        """Call the operation; raises what the server refused with, ``server_not_reachable`` or ``…_understood``."""
        request = request_of(op, ask, self._token, key=token_hex(16), compressed=not self._place.is_loopback)
        attempt = 1
        while True:
            asked = None
            try:
                status, headers, body = await self._exchange(request)
                asked = retry_after(headers.get("retry-after"))
                return answer_of(op, status, headers, body)
            except PassdownError as error:
                pause = self._retries.pause_after(attempt, op.name, op.effect, error, asked)
                if pause is None:
                    raise
            await self._pause(pause)
            attempt += 1

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncHttp:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _exchange(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        url = self._place.url + request.path
        try:
            async with self._client.stream("POST", url, content=request.body, headers=dict(request.headers)) as answer:
                chunks: list[bytes] = []
                size = 0
                async for chunk in answer.aiter_bytes():
                    size += len(chunk)
                    if size > MAX_ANSWER:
                        raise PassdownError("server_not_understood", rule="too_large")
                    chunks.append(chunk)
                return answer.status_code, dict(answer.headers), b"".join(chunks)
        except httpx.TimeoutException:
            raise PassdownError("server_not_reachable", rule="timeout") from None
        except httpx.ConnectError:
            raise PassdownError("server_not_reachable", rule="refused") from None
        except httpx.DecodingError:
            raise PassdownError("server_not_understood", rule="encoding") from None
        except httpx.RemoteProtocolError as error:
            # The library has one error for both; its sentence is the only sign of a server that closed without a word.
            gone = "disconnected" in str(error) or "incomplete" in str(error) or "peer closed" in str(error)
            code, rule = ("server_not_reachable", "broken") if gone else ("server_not_understood", "http")
            raise PassdownError(code, rule=rule) from None
        except httpx.TransportError:
            raise PassdownError("server_not_reachable", rule="broken") from None
        except RuntimeError:
            if not self._client.is_closed:
                raise
            raise PassdownError("server_not_reachable", rule="closed") from None
