import { expect, test } from "vitest";
import { early, held, keysLeftOver, keysLost, leftOver, lines } from "../src/review/plan";
import { inOrder, lost } from "../src/save/texts";

test("two configs that mean the same are one text, whatever their style and order", () => {
  const json = '[{"id":"b","inputs":[{"type":"http"}]},{"id":"a","inputs":[]}]';
  const yaml = "- id: a\n  inputs: []\n- { id: b, inputs: [{ type: http }] }\n";
  expect(inOrder(json)).toBe(inOrder(yaml));
  expect(inOrder(`{"pipelines":${json}}`)).toContain("pipelines:\n  - id: a\n");
});

test("what a save takes from a file is counted", () => {
  expect(lost("# one\n\n- id: a # two\n\n")).toEqual(["2 comments", "1 blank line"]);
  expect(lost('[{"id": "a"}]\n')).toEqual([]);
});

test("a plan tells what each change costs", () => {
  const plan = {
    pipelines: {
      kept: ["a"],
      added: ["b"],
      changed: [{ id: "c", held: 1, in_flight: 2, why: ["outputs"] }],
      removed: [{ id: "d", held: 1200, in_flight: 0 }],
    },
    connections: { added: [], changed: [], removed: ["old"] },
    buckets: {
      kept: [],
      added: [],
      changed: [{ name: "m", keys: 3, left_over: false }],
      removed: [],
    },
    stored: [],
  };
  expect(lines(plan).map(({ what, name, cost }) => [what, name, cost])).toEqual([
    ["changed", "c", "1 held message goes on early, 2 batches on the way first"],
    ["removed", "d", "1,200 held messages go on early"],
    ["added", "b", ""],
    ["removed", "old", ""],
    ["changed", "m", "3 keys lost"],
  ]);
  expect(early(held(plan))).toBe("1,201 held messages go on early");
  expect(keysLost(plan)).toBe(3);
});

test("a plan tells what becomes of what is on the disk", () => {
  const nothing = { added: [], changed: [], removed: [] };
  const part = { id: 1, target: "http", part: "journal" as const, bytes: 100 };
  const plan = {
    pipelines: {
      kept: [],
      added: ["back"],
      changed: [{ id: "c", held: 0, in_flight: 1, why: ["outputs"] }],
      removed: [{ id: "gone", held: 0, in_flight: 0 }],
    },
    connections: nothing,
    buckets: {
      ...nothing,
      kept: [],
      changed: [{ name: "durable", keys: 4, left_over: true }],
      removed: [{ name: "in memory", keys: 3, left_over: false }],
    },
    stored: [
      { ...part, pipeline_id: "c", entries: 1, becomes: "goes_on" as const },
      { ...part, pipeline_id: "c", entries: 2, becomes: "left_over" as const },
      { ...part, pipeline_id: "gone", entries: 1200, becomes: "left_over" as const },
      { ...part, pipeline_id: "back", entries: 5, becomes: "taken_up" as const },
    ],
  };
  expect(lines(plan).map(({ name, cost }) => [name, cost])).toEqual([
    ["c", "1 batch on the way first, 1 entry on disk kept, up to 2 entries on disk left over"],
    ["gone", "up to 1,200 entries on disk left over"],
    ["back", "5 entries on disk taken up again"],
    ["durable", "4 keys on disk left over"],
    ["in memory", "3 keys lost"],
  ]);
  expect(leftOver(plan)).toBe(1202);
  expect([keysLost(plan), keysLeftOver(plan)]).toEqual([3, 4]);
});
