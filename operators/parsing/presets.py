"""The forms that are known by a word."""

from __future__ import annotations

from headrace.operators.parsing.accesslog import Combined, Common
from headrace.operators.parsing.form import TextForm
from headrace.operators.parsing.logfmt import Logfmt
from headrace.operators.parsing.syslog import Syslog

PRESETS: dict[str, type[TextForm]] = {
    preset.word: preset for preset in (Combined, Common, Syslog, Logfmt)
}
"""Every preset by its word in a config."""
