"""A year of hourly temperatures at Seattle, as messages: `python specs/weather/readings.py`.

The package `vega-datasets` ships them as `2010/01/01 00:00,39.4`: the hour on the clock, degrees
Fahrenheit. One hour is missing, where the clocks went forward, so there are 8,759. All of them are
given the offset of standard time here: what counts is the day that the clock showed.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from pathlib import Path

Reading = dict[str, str | float]


def source() -> Path | None:
    """Return the file, or None where the package is not installed."""
    # Found, not imported: importing the package needs the data frames that it depends on.
    found = importlib.util.find_spec("vega_datasets")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0], "_data", "seattle-temps.csv")


def readings(file: Path) -> list[Reading]:
    """Return the readings of the file in its order, with RFC 3339 times."""
    with file.open(newline="") as rows:
        return [
            {"time": rfc3339(row["date"]), "temp": float(row["temp"])}
            for row in csv.DictReader(rows)
        ]


def rfc3339(hour: str) -> str:
    """Return `2010/01/01 00:00` as `2010-01-01T00:00:00-08:00`."""
    return f"{hour.replace('/', '-').replace(' ', 'T')}:00-08:00"


if __name__ == "__main__":
    year = source()
    if year is None:
        sys.exit("vega-datasets is not installed; make year and make test install it")
    print(json.dumps(readings(year)))
