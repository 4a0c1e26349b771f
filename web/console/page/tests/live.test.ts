import { describe, expect, test } from "vitest";
import { EMPTY, filled, later, rateOf, SECONDS } from "../src/live/rates";
import { announcement } from "../src/shell/announcement";
import { spark } from "../src/ui/spark";

const minute = (...last: (number | null)[]) => [...EMPTY, ...last].slice(-SECONDS);

describe("a minute of counts", () => {
  test("has the seconds that nobody was told of as a gap", () => {
    expect(later(minute(1, 2), 2, 3).slice(-5)).toEqual([1, 2, null, null, 3]);
  });
  test("is a gap as a whole after a long while", () => {
    expect(later(minute(1, 2), 3600, null)).toEqual(EMPTY);
  });
  test("is filled by a history where there are gaps alone", () => {
    const known = filled(minute(null, 7), [10, null], [90, 95], 5, 100);

    expect(known.slice(-11)).toEqual([2, 2, 2, 2, 2, null, null, null, null, null, 7]);
  });
  test("a bucket that still fills is divided by the seconds that it has", () => {
    expect(filled(EMPTY, [30], [98], 5, 100).slice(-3)).toEqual([15, 15, null]);
  });
});

describe("the rate", () => {
  test("is that of the last two seconds where many pass", () => {
    expect(rateOf(minute(0, 0, 0, 40, 60))).toBe(50);
  });
  test("is nothing as soon as nothing passes any more", () => {
    expect(rateOf(minute(50, 50, 50, 0, 0))).toBe(0);
  });
  test("is that of five seconds where few pass", () => {
    expect(rateOf(minute(1, 0, 2, 1, 1))).toBe(1);
  });
  test("is nothing where nobody knows", () => {
    expect(rateOf(EMPTY)).toBe(0);
  });
});

test("a line has a gap where a value is not known", () => {
  expect(spark([1, 1, null, 1, 1], 1, 4, 10)).toBe("M0.0 2.5L1.0 2.5M3.0 2.5L4.0 2.5");
});

describe("what is said of pipelines that are not well any more", () => {
  const of = () => ({ condition: "failing", error: "why" });
  test("names one and says why", () => {
    expect(announcement(["a"], of)).toBe("a is failing: why");
  });
  test("names some of many", () => {
    expect(announcement(["a", "b", "c", "d", "e"], of)).toBe(
      "5 pipelines are not well: a, b, c and 2 more",
    );
  });
});
