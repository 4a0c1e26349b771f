"""Times: read from texts and numbers, placed in a zone, moved, cut down, written.

A moment is three values while it is worked on, as tuples cost the least: a clock (a naive `datetime` in
whole seconds), nanoseconds below that, and the offset of the clock from UTC. All of this is compiled from
a config (or a script's arguments) once, to functions that take one value.
"""
