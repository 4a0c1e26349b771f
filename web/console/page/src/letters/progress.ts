import type { ReplayFigures } from "../api/letters";

const some = (count: number): string => count.toLocaleString("en");

/** How far a replay has come, in words. */
export function progress({ state, selected, done, failed }: ReplayFigures): string {
  const again = failed
    ? `, ${some(failed)} ${failed === 1 ? "has" : "have"} failed again and ${failed === 1 ? "stays" : "stay"}`
    : "";
  const through = `${some(done)} of ${some(selected)} ${selected === 1 ? "has" : "have"} gone through`;
  if (state === "running") return `${through}${again}`;
  if (state === "stopped") return `Stopped: ${through}${again}.`;
  if (state === "failed")
    return `${through}${again}. Then the pipeline could not go on: the log of the server says why.`;
  if (done === selected && !failed)
    return done === 1
      ? "It has gone through, and is deleted."
      : `All ${some(done)} have gone through, and are deleted.`;
  return `${through}${again}.`;
}
