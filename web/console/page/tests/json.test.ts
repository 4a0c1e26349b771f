import { describe, expect, test } from "vitest";
import { indented, isCut, pieces } from "../src/ui/json";

const shown = (text: string) =>
  indented(text)
    .map((piece) => piece.text)
    .join("");
const reached = (text: string) =>
  Object.fromEntries(
    indented(text).flatMap(({ kind, text, path }) => (kind === "key" ? [[text, path]] : [])),
  );

describe("JSON that is shown", () => {
  test("keeps the digits, the order and the repeated keys of its text", () => {
    const text = '{"2":1234567890123456789012345678901234567890,"1":1.50,"2":-0e+2}';

    expect(
      pieces(text)
        .map((piece) => piece.text)
        .join(""),
    ).toBe(text);
    expect(shown(text).replace(/\s/g, "")).toBe(text);
  });

  test("is indented by two spaces, what is empty in one line", () => {
    expect(shown('{"a":[1,{"b":"{,}"}],"c":{},"d":[[]]}')).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": "{,}"\n    }\n  ],\n  "c": {},\n  "d": [\n    []\n  ]\n}',
    );
    expect(shown(' "x" ')).toBe('"x"');
  });

  test("is a text without a kind where it is no JSON", () => {
    expect(pieces('{"a":"cut off…').at(-1)).toEqual({ kind: "", text: '"cut off…' });
    expect(isCut('{"a":"cut off…')).toBe(true);
    expect(isCut('{"a":"…"}')).toBe(false);
  });
});

describe("the path of a field", () => {
  test("leads through objects", () => {
    expect(reached('{"order":{"id":7,"site":{"x":1}},"n":2}')).toEqual({
      '"order"': "order",
      '"id"': "order.id",
      '"site"': "order.site",
      '"x"': "order.site.x",
      '"n"': "n",
    });
  });

  test("ends at a list, as the paths of a config do", () => {
    expect(reached('{"lines":[{"sku":"a"},[{"deep":1}]],"after":{"n":1}}')).toEqual({
      '"lines"': "lines",
      '"sku"': "lines",
      '"deep"': "lines",
      '"after"': "after",
      '"n"': "after.n",
    });
    expect(reached('[{"sku":1}]')).toEqual({ '"sku"': "" });
  });

  test("has a name with a dot at the top level alone", () => {
    expect(reached('{"a.b":{"c":1},"d":{"e.f":2}}')).toEqual({
      '"a.b"': "a.b",
      '"c"': "a.b",
      '"d"': "d",
      '"e.f"': "d",
    });
  });
});
