"""The `reducer` as generated source: one loop over a batch that keeps a little state per group.

    groups = {}
    for m in batch:
        machine_1 = m['machine']
        key_2 = machine_1 if machine_1.__class__ is str or ... else exact(machine_1)
        group = groups.get(key_2)
        if group is None:
            group = groups[key_2] = [machine_1, 0, 0]
        temp_3 = m['temp']
        if not (temp_3.__class__ is float or ...):
            raise GiveUp
        group[1] += temp_3
        group[2] += 1
    return [{'machine': slot0, 'mean': slot1 / slot2, ...} for [slot0, slot1, slot2] in groups.values()]

Where it gives up, the plain form decides. Columns first (a list of values per field and group, summed
by the library) is as fast for ten groups in a thousand messages, and three times slower for a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from headrace.compiler.code import Code
from headrace.compiler.dottedpaths import DottedPath
from headrace.operators.aggregations import COUNT, DISTINCT, Slot, Takes, exact

if TYPE_CHECKING:
    from headrace.operators.reducer import Aggregation, Reducer

Need = tuple[str | None, Slot]
"""A slot and the field whose values it counts in; None: every message of the group."""


class Accumulation:
    """The source of one reducer while it is written."""

    def __init__(self, reducer: Reducer, code: Code) -> None:
        self._reducer = reducer
        self._code = code
        self._may_miss = reducer.on_missing == "skip"
        self._wanted = {each.field for each in reducer.aggregations if each.function != "count"}
        needs = dict.fromkeys(need for each in reducer.aggregations for need in self._needs(each))
        if not reducer.group_by:
            needs.pop((None, COUNT), None)
            if code.may_have_dropped:  # the batch has more messages than get here
                needs[(None, COUNT)] = None
        self._slots = {need: at for at, need in enumerate(needs, start=len(reducer.group_by))}
        self._fields = [*dict.fromkeys(field for field, _ in self._slots if field is not None)]

    def write(self) -> None:
        """Write all of it."""
        demand = self._code.keep_if if self._may_miss else self._code.give_up_unless
        paths = map(DottedPath, self._reducer.group_by)
        groups = [self._code.read(path, optional=self._may_miss) for path in paths]
        for value in groups:
            demand(f"{value} is not None")
        for field in self._fields:
            self._read(field)
        self._code.let_go()
        if groups:
            self._find_group(groups)
        else:
            initials = (f"slot{at} = {slot.initial}" for (_, slot), at in self._slots.items())
            self._code.before(*initials)
        if updates := self._updates(None, ""):
            self._code.line(*updates)
        for field in self._fields:
            self._count_in(field)
        self._return_results()

    def _read(self, field: str) -> str:
        return self._code.read(DottedPath(field), optional=self._may_be_missing(field))

    def _needs(self, each: Aggregation) -> Iterable[Need]:
        """Yield what one aggregation keeps of a group."""
        may_miss = each.field is None or self._may_be_missing(each.field)
        for slot in each.known.slots:
            yield None if slot is COUNT and not may_miss else each.field, slot
        if each.known.needs_value and may_miss:
            yield each.field, COUNT

    def _may_be_missing(self, field: str) -> bool:
        """Return whether a message may lack the field: nobody minds, or only `count` asks."""
        return self._may_miss or field not in self._wanted

    def _find_group(self, values: Sequence[str]) -> None:
        """Write how the state of a message's group is found, or made."""
        code = self._code
        code.before("groups = {}")
        keys = [self._key(value) for value in values]
        key = keys[0] if len(keys) == 1 else code.let(f"({', '.join(keys)})", "key")
        state = ", ".join([*values, *(slot.initial for _, slot in self._slots)])
        code.line(
            f"group = groups.get({key})",
            "if group is None:",
            f"    group = groups[{key}] = [{state}]",
        )

    def _key(self, value: str) -> str:
        """Write what stands for a value in a set or a dict, where 1, 1.0 and true would be one."""
        is_itself = f"{value}.__class__ is str or {value}.__class__ is int"
        return self._code.let(
            f"{value} if {is_itself} else {self._code.constant(exact, 'exact')}({value})", "key"
        )

    def _count_in(self, field: str) -> None:
        """Write what is kept of a field's value, where there is one."""
        code = self._code
        may_miss = self._may_be_missing(field)
        value = self._read(field)
        check = self._check(field, value)
        with code.block(f"if {value} is not None:") if may_miss else nullcontext():
            if check or not may_miss:
                code.give_up_unless(check or f"{value} is not None")
            code.line(*self._updates(field, value))

    def _check(self, field: str, value: str) -> str | None:
        """Return the test that suits every function of a field. None: nobody minds the type."""
        takes = {each.known.takes for each in self._reducer.aggregations if each.field == field}
        if Takes.NUMBERS in takes:
            return self._code.is_number(value)
        if Takes.ORDERED in takes:  # one of each kind are not compared: that raises
            return f"{self._code.is_number(value)} or {value}.__class__ is str"
        return None

    def _updates(self, field: str | None, value: str) -> list[str]:
        slots = {slot: at for (of, slot), at in self._slots.items() if of == field}
        key = self._key(value) if DISTINCT in slots else ""
        place = "group[{}]" if self._reducer.group_by else "slot{}"
        return [
            slot.update.format(slot=place.format(at), value=value, key=key)
            for slot, at in slots.items()
        ]

    def _return_results(self) -> None:
        """Write what goes on: a message, or one of each group."""
        group_by = [f"{path!r}: slot{at}" for at, path in enumerate(self._reducer.group_by)]
        values = [f"{each.as_!r}: {self._result(each)}" for each in self._reducer.aggregations]
        message = "{" + ", ".join(group_by + values) + "}"
        if not self._reducer.group_by:
            self._code.returns(f"[{message}] if {self._messages} else []")
            return
        state = ", ".join(f"slot{at}" for at in range(len(group_by) + len(self._slots)))
        self._code.returns_each(message, f"[{state}]", "groups.values()")

    @property
    def _messages(self) -> str:
        """The expression for how many messages there were, where all of them are one group."""
        at = self._slots.get((None, COUNT))
        return "len(batch)" if at is None else f"slot{at}"

    def _result(self, each: Aggregation) -> str:
        """Return the expression for one aggregation, over the slots as they are in the end."""
        known = each.known
        slots = [
            f"slot{self._slots[need]}" if need in self._slots else self._messages
            for need in self._needs(each)
        ]
        fold = self._code.constant(known.fold, each.function)
        result = f"({known.result.format(*slots, fold=fold)})"
        if known.needs_value and len(slots) > len(known.slots):  # the last one counts the values
            return f"({result} if {slots[-1]} else None)"
        return result
