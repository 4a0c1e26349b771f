import { expect, test } from "vitest";
import { toJson, toYaml } from "../src/draft/exact";
import { fieldsOf, parsed, written } from "../src/draft/fields";
import { comments, pathAt, read, steps } from "../src/draft/yaml";

const DIGITS = "1234567890123456789012345678901234567890";

test("numbers keep their digits on their way to the server", () => {
  const text = `a: ${DIGITS}\nb: 1.50\nc: 0x10\nd: .5\ne: "5"\nf: [true, null, ~]\n`;
  expect(toJson(read(text).document)).toBe(
    `{"a":${DIGITS},"b":1.50,"c":16,"d":0.5,"e":"5","f":[true,null,null]}`,
  );
});

test("an alias is what it stands for, and too many of them are refused", () => {
  expect(toJson(read("a: &x { b: 1 }\nc: *x\n").document)).toBe('{"a":{"b":1},"c":{"b":1}}');
  const bomb = Array.from({ length: 30 }, (_, at) =>
    at ? `a${at}: &a${at} [*a${at - 1}, *a${at - 1}, *a${at - 1}]` : `a0: &a0 ${"x".repeat(50)}`,
  );
  expect(() => toJson(read(bomb.join("\n")).document)).toThrow("2 MiB");
});

test("what the server tells is shown as people write it", () => {
  const json = `{"id":"a","config":{"id":"a","n":${DIGITS},"inputs":[{"type":"http"}],"outputs":[],"code":"x\\ny\\n","s":"5"}}`;
  expect(toYaml(json, "config")).toBe(
    `id: a\nn: ${DIGITS}\ninputs:\n  - type: http\noutputs: []\ncode: |\n  x\n  y\ns: "5"\n`,
  );
});

test("messages keep their digits, and fields have type and example", () => {
  const message = `{"order":{"id":${DIGITS}},"tags":["a"],"none":null}`;
  expect(written(parsed(message))).toBe(message);
  expect(fieldsOf([parsed(message), parsed('{"none":"x"}')])).toEqual([
    { path: "order", type: "object", example: `{"id":${DIGITS}}` },
    { path: "order.id", type: "number", example: DIGITS },
    { path: "tags", type: "list", example: '["a"]' },
    { path: "none", type: "null or text", example: "null" },
  ]);
});

test("a path of the server is steps", () => {
  expect(steps("transforms[1].aggregations[0].as")).toEqual([
    "transforms",
    1,
    "aggregations",
    0,
    "as",
  ]);
});

test("the innermost thing at an offset has a path", () => {
  const text = "inputs:\n  - type: http\n    auth: { type: bearer }\n";
  expect(pathAt(read(text), text.indexOf("bearer"))).toEqual(["inputs", 0, "auth", "type"]);
});

test("comments are counted by lines", () => {
  expect(comments(read("# one\n# two\na: 1 # three\n# four\nb: [1] # five\n"))).toBe(5);
});
