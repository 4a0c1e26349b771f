"""The forms that `parse` takes texts apart by, a file each.

`form.py` says what one is, `values.py` what becomes of the texts that it finds, `presets.py` which are
known by a word.
"""
