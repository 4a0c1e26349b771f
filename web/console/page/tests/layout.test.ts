import { describe, expect, test } from "vitest";
import { CARD, components, GRID, layout } from "../src/graph/layout";

describe("layout", () => {
  test("a card stands right of every card it reads", () => {
    const places = layout(
      ["a", "b", "c"],
      [
        ["a", "b"],
        ["b", "c"],
        ["a", "c"],
      ],
    );

    expect(places.get("a")!.x).toBeLessThan(places.get("b")!.x);
    expect(places.get("b")!.x).toBeLessThan(places.get("c")!.x);
    for (const { x, y } of places.values())
      expect([x % GRID, y % GRID].map(Math.abs)).toEqual([0, 0]);
  });
  test("graphs that have nothing to do with each other fill shelves, not one column", () => {
    const ids = Array.from({ length: 100 }, (_, i) => String(i));

    const places = [...layout(ids, []).values()];

    const width = Math.max(...places.map((p) => p.x)) + CARD.width;
    const height = Math.max(...places.map((p) => p.y)) + CARD.height;
    expect(width / height).toBeGreaterThan(1);
  });
  test("an edge from a pipeline that is gone is left out", () => {
    expect(components(["a"], [["gone", "a"]])).toEqual([{ ids: ["a"], edges: [] }]);
  });

  test("what is called as JavaScript calls things of its own has a place as well", () => {
    const ids = ["__proto__", "constructor", "toString"];

    const places = layout(ids, [
      ["__proto__", "constructor"],
      ["constructor", "toString"],
    ]);

    expect([...places.keys()].sort()).toEqual(ids.sort());
    expect([...places.values()].every(({ x, y }) => Number.isFinite(x + y))).toBe(true);
  });
});
