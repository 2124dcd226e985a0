"""Who may write next: a queue in the process, then a lock on a file between processes.

Design: SQLite's own busy handler is neither fair nor quick when many write, so writers stand in line before they reach
it. :class:`FifoQueue` hands the turn from thread to thread in order of arrival. Only the thread that has the turn
touches :class:`FileLock`, an advisory ``flock`` that the kernel drops when its process dies, however it dies. Neither
guards correctness, which stays with the transaction of the database; they give order and bounded waits.

Invariants: at most one thread of a process holds or awaits the file lock; a thread that gives up leaves nothing behind
that could grant the lock to nobody.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import deque
from pathlib import Path


class FifoQueue:
    """``places`` turns at a time, one unless said otherwise; waiters get theirs in order of arrival."""

    def __init__(self, places: int = 1) -> None:
        self._mutex = threading.Lock()
        self._free = places
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, deadline: float) -> bool:
        """Wait for the turn until ``deadline`` (of ``time.monotonic``); False if it did not come."""
        with self._mutex:
            if self._free:
                self._free -= 1
                return True
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        try:
            granted = gate.acquire(timeout=max(0.0, deadline - time.monotonic()))
        except BaseException:
            if self._leave(gate):
                self.release()
            raise
        return granted or self._leave(gate)

    def release(self) -> None:
        """Give the turn to whoever waits longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    @property
    def waiting(self) -> int:
        """How many threads stand in line."""
        return len(self._waiting)

    def _leave(self, gate: threading.Lock) -> bool:
        """Step out of the line; True if the turn was given in the meantime and is ours after all."""
        with self._mutex:
            if gate in self._waiting:
                self._waiting.remove(gate)
                return False
            return True


class FileLock:
    """An exclusive lock on the file at ``path``, made if absent (mode 0600). One thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._change = threading.Condition()
        self._asking = False
        self._wanted = False
        self._granted = False
        self._failure: OSError | None = None

    def acquire(self, deadline: float) -> bool:
        """Lock until ``deadline`` (of ``time.monotonic``); False if another process kept it. ``OSError`` passes.

        The wait must block in the kernel, which polling cannot replace without starving, and it must end, which
        ``flock`` cannot do: so a thread of its own waits, and stays to be used by the next caller if this one gives up.
        """
        with self._change:
            if not self._asking:
                file = self._opened()
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                except BlockingIOError:
                    self._ask(file)
            self._wanted = True
            try:
                self._change.wait_for(lambda: self._granted or self._failure, max(0.0, deadline - time.monotonic()))
                granted, failure = self._granted, self._failure
            except BaseException:
                if self._granted:
                    self.release()
                raise
            finally:
                self._wanted = self._granted = False
                self._failure = None
            if failure is not None:
                raise failure
            return granted

    def release(self) -> None:
        """Unlock."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, unless a waiter still needs it; then it stays open until the process ends."""
        with self._change:
            if self._file is not None and not self._asking:
                os.close(self._file)
                self._file = None

    def abandon(self) -> None:
        """Forget the lock in a forked child: the parent's lock stays as it is, the child only drops its copy."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        return self._file

    def _ask(self, file: int) -> None:
        self._asking = True
        try:
            threading.Thread(target=self._wait, args=(file,), daemon=True, name="passdown-store-lock").start()
        except BaseException:
            self._asking = False
            raise

    def _wait(self, file: int) -> None:
        failure: OSError | None = None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            failure = error
        with self._change:
            self._asking = False
            if failure is None and not self._wanted:
                fcntl.flock(file, fcntl.LOCK_UN)
            elif self._wanted:
                self._granted = failure is None
                self._failure = failure
                self._change.notify_all()
