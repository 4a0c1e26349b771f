"""The store: what has to outlast the process, in one SQLite database of a folder.

It knows bytes and not pipelines: whoever has something kept says what it means. Nothing here is imported,
and nothing is written, unless a config or the settings name something that is kept.
"""
