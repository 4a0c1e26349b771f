import { describe, expect, test } from "vitest";
import type { Pipeline } from "../src/api/client";
import { apart } from "../src/graph/apart";
import { Crowd } from "../src/graph/crowd";
import { CARD, layout, type Placed } from "../src/graph/layout";
import { fullness, taken } from "../src/graph/queue";
import { lines, name, path, thickness } from "../src/graph/route";
import { trouble } from "../src/graph/trouble";

const at = (x: number, y: number): Placed => ({ x, y });

describe("where cards stand", () => {
  test("somebody has moved one: it stands there, and the others where they are laid out", () => {
    const laid = new Map([
      ["a", at(0, 0)],
      ["b", at(400, 0)],
    ]);

    const places = apart(laid, new Map([["a", at(0, 900)]]));

    expect(Object.fromEntries(places)).toEqual({ a: at(0, 900), b: at(400, 0) });
  });
  test("one that is covered by a card that was moved makes way", () => {
    const laid = new Map([
      ["a", at(0, 0)],
      ["b", at(400, 0)],
    ]);

    const places = apart(laid, new Map([["a", at(420, 20)]]));

    const [a, b] = [places.get("a")!, places.get("b")!];
    expect(Math.abs(a.x - b.x) >= CARD.width || Math.abs(a.y - b.y) >= CARD.height).toBe(true);
  });
  test("a pipeline that is there no more takes no place", () => {
    expect(apart(new Map([["a", at(0, 0)]]), new Map([["gone", at(0, 0)]])).size).toBe(1);
  });
  test("a large tangle is in layers, each card right of all it reads", () => {
    const ids = Array.from({ length: 400 }, (_, n) => String(n));
    const edges = ids.slice(1).map((id, n) => [String(Math.floor(n / 3)), id] as const);

    const places = layout(ids, edges);

    expect(places.size).toBe(400);
    for (const [from, to] of edges)
      expect(places.get(from)!.x + CARD.width).toBeLessThan(places.get(to)!.x);
    const crowd = new Crowd();
    for (const place of places.values()) {
      expect(crowd.covered(place)).toBeUndefined();
      crowd.add(place);
    }
  });
});

describe("a line", () => {
  test("turns around a card that stands in the way", () => {
    const places = new Map([
      ["a", at(0, 0)],
      ["between", at(400, 0)],
      ["b", at(800, 0)],
    ]);

    const line = lines([["a", "b"]], places).get(name("a", "b"))!;

    const crowd = new Crowd(places.values());
    expect(crowd.crossed(line, places.get("a")!, places.get("b")!)).toEqual([]);
    expect(line[0]).toEqual(at(CARD.width, CARD.height / 2));
    expect(line.at(-1)).toEqual(at(800, CARD.height / 2));
    expect(path(line)).toMatch(/^M256 58L.*L800 58$/);
  });
  test("is wider by the logarithm of what passes, and thin where nothing does", () => {
    expect(thickness(0)).toBe(1.2);
    expect(thickness(10)).toBeLessThan(thickness(100));
    expect(thickness(1e9)).toBe(6.5);
  });
});

describe("what is not well", () => {
  const pipeline: any = {
    config: { inputs: [{ type: "pipeline", upstream: "a" }, { type: "kafka" }], outputs: [] },
    inputs: [
      { state: "up", why: null, retry_at: null },
      { state: "coming", why: "no broker answers", retry_at: 15_000 },
    ],
    outputs: [],
    queues: [{ stage: "input", component: 0, unit: "batches", used: 48, capacity: 64 }],
  };

  test("an input that cannot connect is told with why and when it is tried again", () => {
    const gauge = { condition: "degraded", error: "", failures: 0 } as const;

    expect(trouble(pipeline, gauge, () => 11_500)).toEqual({
      text: "kafka: no broker answers; tried again in 4 s",
    });
  });
  test("failures are told with their number", () => {
    const gauge = { condition: "failing", error: "no field", failures: 5 } as const;

    expect(trouble(pipeline, gauge, () => 0)).toEqual({ text: "no field", count: 5 });
  });
  test("nothing is told of what runs", () => {
    const gauge = { condition: "running", error: "long ago", failures: 5 } as const;

    expect(trouble(pipeline, gauge, () => 0)).toBeUndefined();
  });
  test("the queue for a pipeline is as full as its input says", () => {
    expect(fullness(pipeline, "a")).toBe(0.75);
    expect(fullness(pipeline, "other")).toBe(0);
    expect(fullness(undefined, "a")).toBe(0);
  });
  test("of what another hands on a pipeline takes all, or what it has conditions for", () => {
    const when = [{ type: "exists", field: "temp" }];
    const takes = (...inputs: object[]) =>
      taken({ config: { inputs } } as unknown as Pipeline, "a");
    expect(takes({ type: "pipeline", upstream: "a" })).toBe("all");
    expect(takes({ type: "pipeline", upstream: "a", when: [] })).toBe("all");
    expect(takes({ type: "pipeline", upstream: "a", when })).toBe("its own");
    expect(takes({ type: "pipeline", upstream: "a", when }, { type: "http" })).toBe("some");
    expect(takes({ type: "pipeline", upstream: "b", when })).toBe("all");
  });
});
