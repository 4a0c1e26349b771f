import { describe, expect, test } from "vitest";
import { commands, matching } from "../src/shell/commands";
import { nearest } from "../src/ui/nearest";

describe("the nearest name", () => {
  const known = ["press-means", "press-alarms", "fusion"];
  test("has a letter too many, too few or another", () => {
    expect(nearest("pres-alarms", known)).toBe("press-alarms");
    expect(nearest("Fusoin", known)).toBe("fusion");
  });
  test("begins as what was meant", () => {
    expect(nearest("press-me", known)).toBe("press-means");
  });
  test("is none where none is like it", () => {
    expect(nearest("quarterly", known)).toBeUndefined();
  });
});

describe("commands", () => {
  const nothing = () => {};
  const all = commands(["cold-press", "express", "press"], true, nothing, nothing);
  const names = (typed: string) => matching(all, typed).map(({ name }) => name);
  test("those that fit best come first", () => {
    expect(names("press").slice(0, 3)).toEqual(["press", "cold-press", "Edit cold-press"]);
  });
  test("letters in their order are enough", () => {
    expect(names("cdprs")).toContain("cold-press");
  });
  test("what changes things is for who may", () => {
    const few = commands(["press"], false, nothing, nothing).map(({ name }) => name);

    expect(few).not.toContain("Save");
    expect(few).not.toContain("Edit press");
  });
  test("of a thousand pipelines few are listed", () => {
    const many = Array.from({ length: 1000 }, (_, n) => `pipe-${n}`);

    expect(matching(commands(many, true, nothing, nothing), "").length).toBeLessThan(50);
  });
});
