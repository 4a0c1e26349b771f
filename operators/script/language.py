"""The functions that the script language has of itself, as this engine offers them.

The engine cannot list them in the build that is installed (`metadata` takes a JSON library into it), so
they stand here: of rhai 1.27.0, without what is left out, and with our own. Tests try each against the
engine, compare the list with what our part of the engine registers, and see that docs/scripts.md has an
example of each; another version of rhai fails them until somebody has looked.
"""

from __future__ import annotations

VERSION = "1.27.0"
"""The version of rhai whose functions these are."""

KEYWORDS = frozenset({"Fn", "call", "curry", "is_def_fn", "is_def_var", "is_shared", "type_of"})
"""Functions that are a part of the language itself."""

_REGISTERED = """
E PI abs acos acosh all append asin asinh atan atanh bits bytes ceiling chars chop clear contains cos
cosh crop debug dedup drain end ends_with exit exp extract fill_with filter find find_map floor for_each
fraction get get_bit get_bits hypot index_of insert int is_anonymous is_empty is_even is_exclusive
is_finite is_inclusive is_infinite is_nan is_odd is_zero keys len ln log make_lower make_upper map max
min mixin name order order_by order_desc pad parse_float parse_int parse_json pop print push range
reduce reduce_rev remove replace retain reverse round set set_bit set_bits shift sign sin sinh some sort
sort_by sort_desc splice split split_rev sqrt start starts_with sub_string take tan tanh to_binary
to_blob to_chars to_debug to_degrees to_float to_hex to_int to_json to_lower to_octal to_radians
to_string to_upper trim truncate values zip
"""

FUNCTIONS = KEYWORDS | {*_REGISTERED.split()}
"""Every function that a script finds besides those that it is lent (`scriptnames.LENT`)."""
