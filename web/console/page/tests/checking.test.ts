import { expect, test } from "vitest";
import type { Diagnostic } from "../src/api/client";
import { mend, problems, sentence } from "../src/draft/checking";
import { read } from "../src/draft/yaml";

const told = (rest: Partial<Diagnostic>): Diagnostic => ({
  file: null,
  line: null,
  column: null,
  end_line: null,
  end_column: null,
  replacement: null,
  path: "",
  severity: "error",
  code: "unknown-key",
  message: "unknown key",
  found: null,
  expected: null,
  suggestion: null,
  ...rest,
});

test("a place in code points is an offset in UTF-16", () => {
  const text = "id: a\nname: '😀😀' # secnds\n";
  const at = { line: 2, column: 14, end_line: 2, end_column: 20, replacement: "seconds" };
  const [problem] = problems([told(at)], read(text));
  expect(text.slice(problem!.from, problem!.to)).toBe("secnds");
  expect(mend(problem!, text)?.insert).toBe("seconds");
  expect(mend(problem!, text.replace("secnds", "second"))).toBeUndefined();
});

test("what has no place stands where its path leads", () => {
  const text = "id: a\ntransforms:\n  - type: buffer\n";
  const [problem] = problems([told({ path: "transforms[0]" })], read(text));
  expect(problem).toMatchObject({ line: 3, from: text.indexOf("type: buffer") });
});

test("places beyond the text are its end", () => {
  const [problem] = problems([told({ line: 9, column: 9 })], read("id: a"));
  expect(problem!.from).toBe(5);
});

test("a problem is said with what would do", () => {
  const [problem] = problems([told({ expected: "a number" })], read("id: a"));
  expect(sentence(problem!)).toBe("unknown key, expected a number");
});
