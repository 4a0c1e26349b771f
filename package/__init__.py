"""headrace: declarative data pipelines, tested offline.

    from headrace import Pipeline

Whatever is named here is imported when it is asked for: most who import a room need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.authoring.offlinepipeline import Came, Pipeline

__all__ = ["Came", "Pipeline"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'headrace' has no attribute '{name}'")
    from headrace.authoring import offlinepipeline

    return getattr(offlinepipeline, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
