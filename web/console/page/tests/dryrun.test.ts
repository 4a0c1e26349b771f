import { describe, expect, test } from "vitest";
import { read } from "../src/dryrun/answer";
import { fates } from "../src/dryrun/fate";
import { messagesOf } from "../src/dryrun/given";
import { Axis, drawn, sizes } from "../src/dryrun/place";
import { body } from "../src/dryrun/request";
import { lanes, moments, type Lane } from "../src/dryrun/steps";
import { seconds, spelled, ticks } from "../src/dryrun/times";
import { compact, JsonText } from "../src/ui/jsontext";

const BIG = "1234567890123456789012345678901234567890.10";

describe("JSON text", () => {
  test("digits, the order of keys and repeated keys stay", () => {
    const text = `{"b": ${BIG}, "a": [1, {"x,]": "\\"}"}], "b": -0}`;
    const entries = new JsonText(text).entries.map(([key, value]) => [key, value.text]);

    expect(entries).toEqual([
      ["b", BIG],
      ["a", '[1, {"x,]": "\\"}"}]'],
      ["b", "-0"],
    ]);
    expect(new JsonText(entries[1]![1]!).items.map((item) => item.text)).toEqual([
      "1",
      '{"x,]": "\\"}"}',
    ]);
  });
  test("an empty array and an empty object have nothing", () => {
    expect(new JsonText(" [ ] ").items).toEqual([]);
    expect(new JsonText("{ }").entries).toEqual([]);
  });
  test("space goes, but not from strings", () => {
    expect(compact('{ "a b" : "c \\" d",\n  "e": [ 1 ] }')).toBe('{"a b":"c \\" d","e":[1]}');
  });
});

describe("messages that somebody wrote", () => {
  test.each([
    ['{"n": 1}\n{"n": 2}\n', ['{"n":1}', '{"n":2}']],
    ['[{"n": 1}, 2, "x"]', ['{"n":1}', "2", '"x"']],
    [`{\n "n": ${BIG}\n}`, [`{"n":${BIG}}`]],
    ["[1]\n[2]", ["[1]", "[2]"]],
    ["1 2,3", ["1", "2", "3"]],
    ["", []],
    ["[]", []],
  ])("%j", (text, messages) => expect(messagesOf(text)).toEqual(messages));

  test.each([
    ['{"n": 1}\n{n: 2}', "Line 2: '{n: 2}' is no JSON"],
    ["}", "Line 1: '}' is no JSON"],
    ['{"n": 1', "Line 1:"],
    ["\n\nhot", "Line 3: 'hot' is no JSON"],
  ])("%j is told with its line", (text, told) => expect(() => messagesOf(text)).toThrow(told));
});

describe("times", () => {
  test.each([
    [0, "0 s"],
    [0.25, "250 ms"],
    [5, "5 s"],
    [2.5, "2.5 s"],
    [90, "1 min 30 s"],
    [7500, "2 h 5 min"],
    [86400 * 3, "3 d"],
  ])("%d is %s, and is read as that", (time, text) => {
    expect(spelled(time)).toBe(text);
    expect(seconds(text)).toBe(time);
  });
  test.each(["", "soon", "5 weeks", "-1", "1e3", "2000000000"])("%j is no time", (text) =>
    expect(seconds(text)).toBeUndefined(),
  );
  test.each([
    [0.05, 10, 0.005],
    [12, 12, 1],
    [3600, 10, 600],
    [86400 * 365, 8, 86400 * 90],
  ])("of %d s at most %d are marked, each %d s", (end, most, step) => {
    expect(ticks(end, most)[1]).toBeCloseTo(step);
    expect(ticks(end, most).length).toBeLessThanOrEqual(most + 1);
  });
});

const stage = (batches: { at: number; origins: number[][] }[]) =>
  batches.map(({ at, origins }) => ({ at, origins, messages: origins.map(String) }));
const chain = (...all: Lane["batches"][]): Lane[] =>
  all.map((batches, i) => ({
    stage: i - 1,
    kind: ["input", "filter", "reducer"][i]!,
    says: "",
    batches,
    stopped: [],
    state: "ran",
  }));

describe("what is drawn", () => {
  test("boxes of one moment do not cover those of the next, however near it is", () => {
    const at = [0, 0.001, 0.002, 3600];
    const all = chain(stage(at.map((at) => ({ at, origins: [[0], [1], [2], [3]] }))));
    const { groups } = drawn(all, sizes(false))[0]!;
    const axis = new Axis(groups, 3600, 700);

    for (const [i, group] of groups.slice(0, -1).entries())
      expect(axis.x(group.at) + group.width).toBeLessThanOrEqual(axis.x(groups[i + 1]!.at));
    expect(axis.x(3600)).toBeLessThanOrEqual(axis.width);
  });
  test("a second is as long as another where there is room", () => {
    const axis = new Axis([], 10, 500);

    expect(axis.x(4) - axis.x(2)).toBeCloseTo(axis.x(9) - axis.x(7));
    expect(axis.width).toBe(500);
  });
  test("of many messages some are drawn and the others counted", () => {
    const many = Array.from({ length: 1000 }, (_, i) => ({ at: i, origins: [[i], [i]] }));
    const one = [{ at: 0, origins: Array.from({ length: 200 }, (_, i) => [i]) }];

    for (const batches of [many, one, one.concat(many)]) {
      const [{ groups, hidden }] = drawn(chain(stage(batches)), sizes(false)) as [
        ReturnType<typeof drawn>[0],
      ];
      const shown = groups.flatMap((group) => group.boxes.flatMap((box) => box.marbles)).length;
      expect(shown).toBeLessThanOrEqual(300);
      expect(shown + hidden).toBe(batches.reduce((n, batch) => n + batch.origins.length, 0));
    }
  });
  test("the clock stops where anything goes in or comes out, and at the end", () => {
    const all = chain(stage([{ at: 2, origins: [[0]] }]), stage([{ at: 7, origins: [[0]] }]));

    expect(moments(all, 10)).toEqual([0, 2, 7, 10]);
  });
});

describe("what became of a message", () => {
  test("it came out, alone or with others, or went no further than a stage", () => {
    const all = chain(
      stage([{ at: 0, origins: [[0], [1], [2], [3]] }]),
      stage([{ at: 0, origins: [[0], [1], [3]] }]),
      stage([{ at: 5, origins: [[0, 1]] }]),
    );
    all[1]!.stopped = [{ message: 2, stage: 0, why: "'temp' is missing", since: 0, isHeld: false }];
    all[2]!.stopped = [{ message: 3, stage: 1, why: "held (1 in all)", since: 0, isHeld: true }];

    expect(fates(all, 4).map(([fate]) => `${fate!.how}: ${fate!.where} ${fate!.says}`)).toEqual([
      "out: out at 5 s, with 1 other",
      "out: out at 5 s, with 1 other",
      "lost: filter 'temp' is missing",
      "held: reducer held (1 in all)",
    ]);
  });
  test("nothing came out of a chain that failed", () => {
    const given = [{ at: 0, messages: ["1"] }];
    const answer = read(
      '{"outcome":"failed","at":0,"kind":"map","phase":"apply","message":"no","diagnostics":[],"stages":[],"left":[]}',
    );
    const all = lanes(given, [{ kind: "map", says: "" }], answer);

    expect(all.map((lane) => lane.state)).toEqual(["ran", "failed"]);
    expect(fates(all, 1)).toEqual([[{ where: "map", how: "lost", says: "failed" }]]);
  });
});

describe("what goes to the server and comes back", () => {
  const asked = {
    config: `{"id":"p","transforms":[{"type":"filter","Numeric":{"value":${BIG}}}],"state":null}`,
    given: [
      { at: 0, messages: [BIG] },
      { at: 2.5, messages: ["1", "2"] },
    ],
    seconds: 5,
    fromLive: true,
  };
  test("batches go at their times, and time goes on from the last of them", () => {
    const sent = body(asked);

    expect(sent).toContain(`"given":[{"at":0,"messages":[${BIG}]},{"at":2.5,"messages":[1,2]}]`);
    expect(JSON.parse(sent)).toMatchObject({ advance_seconds: 2.5, attribution: true });
    expect(JSON.parse(body({ ...asked, seconds: 1 }))).toMatchObject({ advance_seconds: 0 });
  });
  test("the chain goes as it is written", () => {
    expect(body(asked)).toContain(`"transforms":[{"type":"filter","Numeric":{"value":${BIG}}}]`);
    expect(JSON.parse(body({ ...asked, config: '{"id":"p"}' }))).toMatchObject({ transforms: [] });
  });
  test("the bucket is a copy of what runs if that is wanted, and if there is one", () => {
    const state = { bucket: "machines", key: "press" };
    const config = JSON.stringify({ state });

    expect(JSON.parse(body(asked))).not.toHaveProperty("buckets");
    expect(JSON.parse(body({ ...asked, config }))).toMatchObject({ state, buckets: "live" });
    expect(JSON.parse(body({ ...asked, config, fromLive: false }))).not.toHaveProperty("buckets");
  });
  test("batches come in the order of their times, with all digits", () => {
    const told = `{"outcome":"ran","stages":[{"index":0,"kind":"map","batches":[[${BIG}],[2]],"on_flush":[[1]],"origins":[[[0]],[[2]]],"on_flush_origins":[[[1]]],"at":[0,7.5],"on_flush_at":[5]}],"buckets":{"k":{"v":${BIG}}},"left":[{"message":3,"at":0,"kind":"map","why":"held (1 in all) ","seconds":8,"held":true}]}`;
    const { stages, bucket, left } = read(told);

    expect(stages[0]!.batches).toEqual([
      { at: 0, messages: [BIG], origins: [[0]] },
      { at: 5, messages: ["1"], origins: [[1]] },
      { at: 7.5, messages: ["2"], origins: [[2]] },
    ]);
    expect(bucket).toEqual([["k", `{"v":${BIG}}`]]);
    expect(left).toEqual([
      { message: 3, stage: 0, why: "held (1 in all) ", since: 8, isHeld: true },
    ]);
  });
});
