"""One recorder a thread; the launch layer hears of the first and of the last."""

import threading

import pytest

from irad import recording


class Recorder:
    def launch(self, kernel, args, options):
        raise AssertionError


def test_nested_and_suspended(monkeypatch):
    heard = []
    monkeypatch.setattr(recording, "on_change", [heard.append])
    outer, inner = Recorder(), Recorder()
    assert recording.active() is None
    with recording.recording(outer):
        assert recording.active() is outer
        with recording.recording(inner):
            assert recording.active() is inner
        assert recording.active() is outer
        with recording.suspended():
            assert recording.active() is None
        assert recording.active() is outer
        assert heard == [True]
    assert recording.active() is None
    assert heard == [True, False]


def test_errors_end_it():
    with pytest.raises(KeyError), recording.recording(Recorder()):
        raise KeyError
    assert recording.active() is None


def test_other_threads_do_not_record():
    found = []
    with recording.recording(Recorder()):
        thread = threading.Thread(target=lambda: found.append(recording.active()))
        thread.start()
        thread.join()
    assert found == [None]
