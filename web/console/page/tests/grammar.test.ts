import { describe, expect, test } from "vitest";
import { Grammar, unlinked, type Schema } from "../src/draft/grammar";
import { read } from "../src/draft/yaml";
import { SCHEMAS, WITH_CONDITIONS } from "./schemas";

const grammar = new Grammar(SCHEMAS as Record<string, Schema>);
const names = (path: (string | number)[], text: string): string[] =>
  grammar.members(grammar.at(path, read(text).value)).map(({ name }) => name);

describe("what may stand at a place", () => {
  test("a component has the keys of its kind", () => {
    expect(names(["transforms", 0], "transforms: [{ type: buffer }]")).toEqual([
      "type",
      "size",
      "until",
    ]);
  });

  test("without a kind it has a kind alone", () => {
    expect(names(["transforms", 0], "transforms: [{}]")).toEqual(["type"]);
  });

  test("of alternatives without a kind all keys may stand there, until one does", () => {
    expect(names(["transforms", 0], "transforms: [{ type: filter }]")).toEqual([
      "type",
      "Numeric",
      "String",
    ]);
    const decided = "transforms: [{ type: filter, String: { field: a } }]";
    expect(names(["transforms", 0], decided)).toEqual(["type", "String"]);
    expect(names(["transforms", 0, "String"], decided)).toEqual(["field", "operator"]);
  });

  test("what may be null is what it is otherwise", () => {
    expect(names(["transforms", 0, "until"], "transforms: [{ type: buffer, until: }]")).toEqual([
      "bucket",
    ]);
  });

  test("the least of a component is what it needs", () => {
    expect(grammar.skeleton({ $ref: "#/components/schemas/Filter" })).toEqual({
      type: "filter",
      Numeric: { field: "", operator: "greater_than", value: 0 },
    });
  });

  test("a noun has type and bounds", () => {
    const [, size] = grammar.members({ $ref: "x", ...grammar.schemas.Buffer });
    expect(size!.noun).toBe("integer ≥ 1");
  });

  test("conditions may lie inside each other", () => {
    const recursive = new Grammar(WITH_CONDITIONS as Record<string, Schema>);
    const inner = "{ type: any, conditions: [{ type: not, conditions: [{ type: one_of }] }] }";
    const { value } = read(`inputs: [{ type: http, when: [${inner}] }]`);
    const path = ["inputs", 0, "when", 0, "conditions", 0, "conditions", 0];
    const keys = (at: (string | number)[]) =>
      recursive.members(recursive.at(at, value)).map(({ name }) => name);
    expect(keys(path)).toEqual(["type", "field", "values"]);
    expect(keys(path.slice(0, 6))).toEqual(["type", "conditions"]);
    expect(recursive.skeleton({ $ref: "#/components/schemas/AnyCondition" })).toEqual({
      type: "any",
      conditions: [{ type: "one_of", field: "", values: [] }],
    });
  });

  test("a value of several types is none of their words, and its noun has all of them", () => {
    const scalar: Schema = { type: ["string", "number", "boolean"] };
    expect(grammar.choices(scalar)).toEqual([]);
    expect(grammar.noun({ type: "array", items: scalar })).toBe(
      "list of string | number | boolean",
    );
    expect(grammar.choices({ type: ["boolean", "null"] })).toEqual(["true", "false"]);
  });

  test("an item that may be null says so, a key does not", () => {
    const name: Schema = { type: ["string", "null"] };
    expect(grammar.noun({ type: ["array", "null"], items: name })).toBe("list of string | null");
    expect(grammar.noun(name)).toBe("string");
  });

  test("a description has the words of its links", () => {
    expect(unlinked("as a [`map`](map.md#cast) does; see [formats](../formats.md).")).toBe(
      "as a `map` does; see formats.",
    );
    expect(unlinked("into: [null, a] (both)")).toBe("into: [null, a] (both)");
  });
});
