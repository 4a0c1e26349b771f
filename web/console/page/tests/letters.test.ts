import { describe, expect, test } from "vitest";
import type { ReplayFigures } from "../src/api/letters";
import { messagesOf } from "../src/dryrun/given";
import { editable, held, request, whereOf } from "../src/letters/letter";
import { progress } from "../src/letters/progress";
import { tried } from "../src/letters/tried";
import { bytes, deadLetters } from "../src/ui/counted";

const DIGITS = "1234567890123456789012345678901234567890";

describe("what a letter holds", () => {
  test("is its messages, with every digit", () => {
    expect(held(`{"id": 7, "messages": [{"n": ${DIGITS}}, "x"], "bytes": 9}`)).toEqual({
      messages: [`{"n": ${DIGITS}}`, '"x"'],
    });
  });
  test("of an input is what arrived, and where it came from", () => {
    const told =
      '{"payload":"{\\"temp\\": ","payload_encoding":"utf-8","metadata":{"topic":"a/b","qos":1}}';

    expect(held(told)).toEqual({
      payload: '{"temp": ',
      isText: true,
      metadata: '{"topic":"a/b","qos":1}',
    });
    expect(held('{"payload":"AP8=","payload_encoding":"base64"}')).toMatchObject({ isText: false });
  });
  test("that is damaged is nothing", () => {
    expect(held('{"id":7,"damaged":true}')).toBeUndefined();
  });
  test("is edited as an array that is indented, and read again as it was", () => {
    const text = editable({ messages: [`{"n":${DIGITS}}`, "[1]"] });

    expect(text).toBe(`[\n  {\n    "n": ${DIGITS}\n  },\n  [\n    1\n  ]\n]`);
    expect(messagesOf(text)).toEqual([`{"n":${DIGITS}}`, "[1]"]);
  });
  test("goes into a replay with the digits that it has", () => {
    expect(request([7])).toBe('{"ids":[7]}');
    expect(request([7], ["2"], true)).toBe('{"ids":[7],"dry_run":true,"messages":[2]}');
    expect(request([7], [`{"n":${DIGITS}}`, "2"])).toBe(
      `{"ids":[7],"messages":[{"n":${DIGITS}},2]}`,
    );
  });
});

describe("a dry run of a letter", () => {
  const told = {
    ...{ stage: "transform", component: 1, kind: "map", failure: null, fails: true },
    ...{ warnings: ["w"], notes: ["n"], messages: [1, 2] },
  };
  const ran = { outcome: "ran", stages: [], left: [], warnings: [], notes: [] };
  test("shows what comes out with every digit, and what does not", () => {
    const stages = `[{"index":1,"batches":[]},{"index":2,"batches":[[{"n":${DIGITS}}],[2]]}]`;
    const left = [{ message: 1, at: 1, kind: "map", why: "no number" }];
    const text = JSON.stringify({ ...told, transformed: { ...ran, left } });

    expect(tried(text.replace('"stages":[]', `"stages":${stages}`))).toEqual({
      where: "transform 1, map",
      messages: ["1", "2"],
      fails: true,
      failure: null,
      out: [`{"n":${DIGITS}}`, "2"],
      left: [{ message: 1, where: "transform 1, map", why: "no number" }],
      notes: ["w", "n"],
    });
  });
  test("behind no transform at all shows what went in", () => {
    expect(tried(JSON.stringify({ ...told, transformed: ran })).out).toEqual(["1", "2"]);
  });
  test("into an output shows what would be written", () => {
    expect(tried(JSON.stringify({ ...told, fails: null, transformed: null })).out).toBeUndefined();
  });
  test("that fails as a whole says where and why", () => {
    const failed = { ...ran, outcome: "failed", at: 2, kind: "script", message: "no" };

    expect(tried(JSON.stringify({ ...told, transformed: failed }))).toMatchObject({
      failure: "transform 2, script: no",
      out: undefined,
    });
  });
});

test("what ended the process is told with where it was handed out", () => {
  const chain = { outputs: [{ type: "file" }] };

  expect(whereOf(chain, { stage: "output", component: 0 })).toBe("output 0, file");
  expect(whereOf(chain, { stage: "process", component: 0 })).toBe(
    "output 0, file: it ended the process",
  );
  expect(whereOf(undefined, { stage: "process", component: null, input_index: 1 })).toBe(
    "input 1: it ended the process",
  );
});

describe("how far a replay is", () => {
  const of = (state: ReplayFigures["state"], selected: number, done: number, failed: number) =>
    progress({ replay: 1, state, selected, done, failed });
  test("is told while it is under way", () => {
    expect(of("running", 1200, 1, 0)).toBe("1 of 1,200 have gone through");
  });
  test("is told when all is gone", () => {
    expect(of("done", 3, 3, 0)).toBe("All 3 have gone through, and are deleted.");
    expect(of("done", 1, 1, 0)).toBe("It has gone through, and is deleted.");
  });
  test("is told with what failed again", () => {
    expect(of("done", 3, 2, 1)).toBe("2 of 3 have gone through, 1 has failed again and stays.");
    expect(of("stopped", 9, 2, 3)).toBe(
      "Stopped: 2 of 9 have gone through, 3 have failed again and stay.",
    );
  });
  test("is told where the pipeline could not go on", () => {
    expect(of("failed", 9, 2, 0)).toContain("the log of the server says why");
  });
});

test("amounts are said in few digits", () => {
  expect([0, 1, 999, 1000, 9_949, 10_400, 999_499, 999_500, 34_000_000].map(bytes)).toEqual([
    "0 bytes",
    "1 byte",
    "999 bytes",
    "1.0 kB",
    "9.9 kB",
    "10 kB",
    "999 kB",
    "1.0 MB",
    "34 MB",
  ]);
  expect([1, 2048].map(deadLetters)).toEqual(["1 dead letter", "2,048 dead letters"]);
});
