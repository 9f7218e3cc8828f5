"""Killing a training at a chosen step."""

from contextlib import contextmanager


class Stopper:
    """A progress sink that kills the training after some steps, or only counts."""

    def __init__(self, after=None):
        self.after, self.calls = after, []

    @contextmanager
    def stage(self, description, total):
        def advance(finished):
            self.calls.append(finished)
            if self.after is not None and sum(self.calls) >= self.after:
                raise KeyboardInterrupt

        yield advance


def save_at_every_step(monkeypatch, resumable):
    """Checkpoints without waiting."""
    monkeypatch.setattr(resumable, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(resumable, "SAVING_SHARE", float("inf"))
