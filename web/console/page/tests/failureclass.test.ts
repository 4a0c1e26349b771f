import { expect, test } from "vitest";
import { helpOf } from "../src/ui/failureclass";

test("of a class it is told what would help, and of one that a later server may have nothing", () => {
  expect(helpOf("unavailable")).toBe("time heals it");
  expect(helpOf("throttled")).toBeUndefined();
  expect(helpOf("constructor")).toBeUndefined();
});
