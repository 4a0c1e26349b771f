import { describe, expect, test } from "vitest";
import type { Pipeline } from "../src/api/client";
import { readings, says } from "../src/graph/describe";

const temp = { type: "numeric", field: "temp", operator: "at_least", value: 80 };
const press = { type: "string", field: "machine", operator: "starts_with", value: "press" };

describe("a filter is told by what it asks for", () => {
  test.each([
    [[temp, press], 'temp ≥ 80 and machine starts with "press"'],
    [[{ type: "not", conditions: [temp] }], "not temp ≥ 80"],
    [
      [{ type: "not", conditions: [temp, press] }],
      'not (temp ≥ 80 and machine starts with "press")',
    ],
    [
      [{ type: "any", conditions: [temp, { type: "exists", field: "a.b" }] }],
      "(temp ≥ 80 or a.b exists)",
    ],
    [[{ type: "all", conditions: [temp] }], "temp ≥ 80"],
    [[{ ...temp, value: undefined, other: "max" }], "temp ≥ max"],
    [[{ type: "boolean", field: "on" }], "on"],
    [[{ type: "boolean", field: "on", value: false }], "on is false"],
    [[{ type: "one_of", field: "n", values: [1, "x"] }], 'n in 1, "x"'],
    [[{ type: "matches", field: "path", regex: "^/a" }], "path matches ^/a"],
    [[{ type: "length", field: "tags", operator: "equal_to", value: 2 }], "length of tags = 2"],
  ])("%j", (when, said) => {
    expect(says({ type: "filter", when })).toBe(said);
  });

  test("in the older form as well", () => {
    const Numeric = { field: "temp", operator: "greater_than", value: 80 };
    expect(says({ type: "filter", Numeric })).toBe("temp > 80");
  });
});

test("what reads messages of another one or is told of its failures is drawn to it, once", () => {
  const pipeline = (id: string, ...inputs: object[]) => ({ id, config: { inputs } }) as Pipeline;

  expect(
    readings([
      pipeline("orders", { type: "http" }),
      pipeline("big", { type: "pipeline", upstream: "orders" }),
      pipeline("faults", { type: "failures", upstream: ["orders", "big"] }),
      pipeline(
        "both",
        { type: "pipeline", upstream: "big" },
        { type: "failures", upstream: ["big"] },
      ),
      pipeline("everything", { type: "failures" }),
    ]),
  ).toEqual([
    ["orders", "big"],
    ["orders", "faults"],
    ["big", "faults"],
    ["big", "both"],
  ]);
});

describe("other kinds", () => {
  test("a map is told by what it writes, or takes away", () => {
    const mappings = [
      { type: "cast", from: "a", to: "float" },
      { type: "now", as: "at" },
      { type: "rename", fields: { mc: "machine", t: "temp" } },
      { type: "drop", from: ["x", "y"] },
      { type: "drop_nulls" },
    ];
    expect(says({ type: "map", mappings })).toBe("a, at, machine, temp, x, y, drop_nulls");
  });

  test.each([
    [
      { type: "parse", from: "topic", split: { by: "/", into: [null, "machine"] } },
      "topic by split",
    ],
    [{ type: "parse", from: "value", preset: "combined" }, "value by preset combined"],
    [{ type: "explode", from: "order.lines" }, "order.lines"],
    [{ type: "failures", upstream: ["a", "b"] }, "of a, b"],
    [{ type: "failures" }, "of all"],
    [{ type: "http", format: "csv" }, "csv"],
    [{ type: "mqtt", topic: "factory/+/temp", format: "text" }, "factory/+/temp"],
    [{ type: "stdout" }, ""],
  ])("%j", (component, said) => {
    expect(says(component)).toBe(said);
  });
});
