import { expect, test, vi } from "vitest";
import { Run } from "../src/dryrun/run.svelte";

vi.mock("../src/ui/width.svelte", () => ({ width: { isNarrow: false } }));

function answers(notes: string[]): void {
  const text = JSON.stringify({ outcome: "ran", stages: [], notes });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(text)));
}

test("a run is not at an end when its config could not be had once", async () => {
  answers([]);
  const written = vi.fn<() => Promise<string>>().mockRejectedValueOnce(new Error("gone"));
  const run = new Run({}, written.mockResolvedValue("{}"));

  await run.prepare();
  expect(run.fault?.text).toBe("gone");
  expect(run.isHarmless).toBe(false); // nobody knows what it would do
  await run.perform();
  await run.perform();

  expect(run.fault).toBeUndefined();
  expect(run.isHarmless).toBe(true);
  expect(written).toHaveBeenCalledTimes(2);
});

test("a run goes unasked only if it does nothing outside", async () => {
  answers(["it calls somebody"]);
  const run = new Run({}, () => Promise.resolve("{}"));

  await run.prepare();

  expect(run.acts).toEqual(["it calls somebody"]);
  expect(run.isHarmless).toBe(false);
});
