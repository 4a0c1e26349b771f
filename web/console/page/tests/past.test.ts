import { expect, test } from "vitest";
import { columns, joined } from "../src/panel/past.svelte";

const bucket = (start: number, inbound = 0, errors = 0) => ({
  start,
  inbound,
  outbound: 0,
  errors,
});

test("a bucket that is told again is as it is told now", () => {
  const known = [bucket(0, 1), bucket(5, 1), bucket(10, 1)];

  expect(joined(known, [bucket(10, 9), bucket(15, 2)], 100)).toEqual([
    bucket(0, 1),
    bucket(5, 1),
    bucket(10, 9),
    bucket(15, 2),
  ]);
  expect(joined(known, [], 100)).toBe(known);
});

test("what is older than wanted is forgotten", () => {
  expect(joined([bucket(0), bucket(5), bucket(10)], [bucket(15)], 10).map((b) => b.start)).toEqual([
    10, 15,
  ]);
});

test("a gap shows as a gap, and no failures as no bar", () => {
  expect(columns([bucket(0, 10, 2), bucket(5, 5), bucket(20, 20)], 5)).toEqual([
    [0, 5, 10, 20],
    [2, 1, null, 4],
    [0, 0, null, 0],
    [2, null, null, null],
  ]);
});
