import { describe, expect, test } from "vitest";
import { offers } from "../src/editor/completion";
import { Grammar, type Schema } from "../src/draft/grammar";
import { SCHEMAS, WITH_CONDITIONS } from "./schemas";

const grammar = new Grammar(SCHEMAS as Record<string, Schema>);
const none = () => [];

/** What is offered at the mark `|` of a text. */
function offered(marked: string, names = none as Parameters<typeof offers>[3]): string[] {
  const offset = marked.indexOf("|");
  const found = offers(marked.replace("|", ""), offset, grammar, names);
  return found?.options.map(({ label }) => label) ?? [];
}

describe("keys", () => {
  test("on an empty line are those of the object, less those that stand there", () => {
    expect(offered("transforms:\n  - type: buffer\n    |\n")).toEqual(["size", "until"]);
    expect(offered("transforms:\n  - type: buffer\n    size: 3\n    |\n")).toEqual(["until"]);
  });

  test("half written are offered all the same", () => {
    expect(offered("transforms:\n  - type: buffer\n    si|\n")).toContain("size");
  });

  test("of the pipeline are offered at the left", () => {
    expect(offered("id: p\n|")).toEqual(["inputs", "transforms"]);
  });

  test("are offered within braces", () => {
    expect(offered("transforms:\n  - type: filter\n    Numeric: { field: a, | }\n")).toEqual([
      "operator",
      "value",
    ]);
  });

  test("between lines of the object are offered", () => {
    expect(offered("transforms:\n  - type: buffer\n    |\n    until:\n      bucket: b\n")).toEqual([
      "size",
    ]);
  });

  test("of a further item are its kinds", () => {
    expect(offered("inputs:\n  - type: http\n  - |")).toEqual(["kafka", "http"]);
  });

  test("nothing is offered in a comment", () => {
    expect(offered("# |")).toEqual([]);
  });
});

describe("values", () => {
  test("after a key are its choices", () => {
    const text = "transforms:\n  - type: reducer\n    aggregations:\n      - function: |\n";
    expect(offered(text)).toEqual(["sum", "avg", "count"]);
  });

  test("within braces are choices as well", () => {
    const text = "transforms:\n  - type: reducer\n    aggregations:\n      - { function: | }\n";
    expect(offered(text)).toEqual(["sum", "avg", "count"]);
  });

  test("of a kind are the kinds, also where one stands", () => {
    expect(offered("inputs:\n  - type: |\n")).toEqual(["kafka", "http"]);
    expect(offered("inputs:\n  - type: ka|fka\n    connection: a\n")).toEqual(["kafka", "http"]);
  });

  test("that are names are what there is", () => {
    const names: Parameters<typeof offers>[3] = (path) =>
      path.join(".") === "inputs.0.connection" ? [{ name: "plant", detail: "kafka" }] : [];
    expect(offered("inputs:\n  - type: kafka\n    connection: |\n", names)).toEqual(["plant"]);
  });
});

describe("conditions inside each other", () => {
  const recursive = new Grammar(WITH_CONDITIONS as Record<string, Schema>);
  const inside = (marked: string) => {
    const text = `inputs:\n  - type: http\n    when:\n      - type: any\n        conditions:\n          - type: not\n            conditions:\n${marked}`;
    const offset = text.indexOf("|");
    const found = offers(text.replace("|", ""), offset, recursive, none);
    return found?.options.map(({ label }) => label) ?? [];
  };

  test("of a further one are its kinds", () => {
    expect(inside("              - |")).toEqual(["one_of", "any", "not"]);
    expect(
      inside("              - type: any\n                conditions:\n                  - |"),
    ).toEqual(["one_of", "any", "not"]);
    expect(inside("              - { type: | }")).toEqual(["one_of", "any", "not"]);
  });

  test("keys are those of its kind", () => {
    expect(inside("              - type: one_of\n                |")).toEqual(["field", "values"]);
    expect(inside("              - { type: one_of, field: a, | }")).toEqual(["values"]);
  });
});
