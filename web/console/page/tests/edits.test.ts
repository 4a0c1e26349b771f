import { describe, expect, test } from "vitest";
import { add, certain, put, remove, scalar, type Edit } from "../src/draft/edits";
import { read, type Path } from "../src/draft/yaml";

const TEXT = `# what it is for
id: means # the name
inputs:
  - type: http # posted
transforms:
  # five seconds
  - type: buffer
    seconds: 5 # not more
    max_messages: 5000

  - type: reducer
    group_by:
      - press # by machine
      - line
    aggregations:
      - { function: count, as: n }
outputs: []
`;

const done = (text: string, { from, to, insert }: Edit): string =>
  text.slice(0, from) + insert + text.slice(to);
const change = (path: Path, written: string, text = TEXT): string =>
  done(text, put(read(text), path, written));

describe("a value", () => {
  test("is exchanged in its place, and the comments stay", () => {
    expect(change(["transforms", 0, "seconds"], "7")).toBe(
      TEXT.replace("seconds: 5 #", "seconds: 7 #"),
    );
  });

  test("is exchanged within braces", () => {
    const path = ["transforms", 1, "aggregations", 0, "as"];
    expect(change(path, "many")).toBe(TEXT.replace("as: n }", "as: many }"));
  });

  test("of a key that has none is written behind it", () => {
    expect(change(["id"], "b", "id:\ninputs: []\n")).toBe("id: b\ninputs: []\n");
    expect(change(["id"], "b", "id: # why\ninputs: []\n")).toBe("id: b # why\ninputs: []\n");
  });

  test("that is new gets a line of its own below the others", () => {
    expect(change(["transforms", 0, "size"], "9")).toBe(
      TEXT.replace("max_messages: 5000\n", "max_messages: 5000\n    size: 9\n"),
    );
    expect(change(["transforms", 1, "on_missing"], "skip")).toBe(
      TEXT.replace("as: n }\n", "as: n }\n    on_missing: skip\n"),
    );
  });

  test("that is new goes within the braces of the others", () => {
    const path = ["transforms", 1, "aggregations", 0, "field"];
    expect(change(path, "temp")).toBe(TEXT.replace("as: n }", "as: n, field: temp }"));
  });

  test("of a further item gets a line of its own", () => {
    expect(change(["transforms", 1, "group_by", 2], "site")).toBe(
      TEXT.replace("- line\n", "- line\n      - site\n"),
    );
  });

  test("of the first item makes the list", () => {
    const text = "transforms:\n  - type: reducer\n";
    expect(change(["transforms", 0, "group_by", 0], "site", text)).toBe(
      `${text.trimEnd()}\n    group_by:\n      - site\n`,
    );
  });

  test("is quoted where it would mean something else", () => {
    expect(scalar("5", "text")).toBe('"5"');
    expect(scalar("plain text", "text")).toBe("plain text");
    expect(scalar("a: b", "text")).toBe('"a: b"');
    expect(scalar("12345678901234567890.5", "plain")).toBe("12345678901234567890.5");
    expect(scalar("{x", "plain")).toBe('"{x"');
  });

  test("follows a block of text on a line of its own", () => {
    const text = "script:\n  code: |\n    one\n    two\n";
    expect(change(["script", "type"], "inline", text)).toBe(`${text}  type: inline\n`);
  });
});

describe("a component", () => {
  test("is added below the others", () => {
    const edit = add(read(TEXT), ["inputs", 1], { type: "kafka", topic: "" });
    expect(done(TEXT, edit)).toBe(
      TEXT.replace("# posted\n", '# posted\n  - type: kafka\n    topic: ""\n'),
    );
  });

  test("is the first one of an empty list", () => {
    const edit = add(read(TEXT), ["outputs", 0], { type: "file", path: "a" });
    expect(done(TEXT, edit)).toBe(
      TEXT.replace("outputs: []\n", "outputs:\n  - type: file\n    path: a\n"),
    );
  });

  test("is added where there is no list yet", () => {
    const text = "id: a\n";
    expect(done(text, add(read(text), ["inputs", 0], { type: "http" }))).toBe(
      "id: a\ninputs:\n  - type: http\n",
    );
  });
});

describe("what is taken out", () => {
  const without = (path: Path, text = TEXT): string => done(text, remove(read(text), path));

  test("goes with its line", () => {
    expect(without(["transforms", 0, "seconds"])).toBe(
      TEXT.replace("    seconds: 5 # not more\n", ""),
    );
    expect(without(["transforms", 1, "group_by", 1])).toBe(TEXT.replace("      - line\n", ""));
  });

  test("at the beginning leaves its place to the next", () => {
    const text = "inputs:\n  - type: http\n    ack: on_receipt\n";
    expect(without(["inputs", 0, "type"], text)).toBe("inputs:\n  - ack: on_receipt\n");
  });

  test("goes from within braces with its comma", () => {
    const path = ["transforms", 1, "aggregations", 0];
    expect(without([...path, "as"])).toBe(TEXT.replace(", as: n }", " }"));
    expect(without([...path, "function"])).toBe(TEXT.replace("function: count, ", ""));
  });

  test("as the last of a list leaves an empty one", () => {
    expect(without(["inputs", 0])).toContain("inputs:\n  [] # posted");
  });

  test("can be a whole component", () => {
    const found = read(without(["transforms", 1])).value as { transforms: unknown[] };
    expect(found.transforms).toHaveLength(1);
  });
});

test("an edit that would mean something else is written anew, with the comments", () => {
  const reading = read(TEXT);
  const wrong = { from: 0, to: 3, insert: "oh:" };
  const edit = certain(reading, wrong, (document) => document.setIn(["id"], "other"));
  const text = done(TEXT, edit);
  expect((read(text).value as { id: string }).id).toBe("other");
  expect(text).toContain("# what it is for");
});
