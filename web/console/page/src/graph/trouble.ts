import type { Pipeline, PlaceState } from "../api/client";
import type { Condition } from "../live/gauges.svelte";

/** What is wrong with a pipeline, in one line, and how often. */
export interface Trouble {
  text: string;
  count?: number;
}

const WITHOUT_A_WORD: Partial<Record<Condition, string>> = {
  failed: "it has failed",
  failing: "messages fail",
  degraded: "an input or an output is not there",
  starting: "its outputs are coming up",
  stopped: "it has ended",
};

/** Say what is wrong, if anything is; `now` is asked for only where a time to come is told. */
export function trouble(
  pipeline: Pipeline,
  gauge: { condition: Condition; error: string; failures: number },
  now: () => number,
): Trouble | undefined {
  const { condition, error, failures } = gauge;
  if (condition === "running") return undefined;
  const place = condition === "failed" || condition === "failing" ? undefined : away(pipeline);
  if (place)
    return {
      text: `${place.kind}: ${place.state.why ?? place.state.state}${again(place.state, now)}`,
    };
  if (failures && error) return { text: error, count: failures };
  return { text: error || WITHOUT_A_WORD[condition]! };
}

/** The first input or output that is not there. */
function away(pipeline: Pipeline): { kind: string; state: PlaceState } | undefined {
  const config = pipeline.config as Record<"inputs" | "outputs", { type: string }[] | undefined>;
  for (const side of ["inputs", "outputs"] as const) {
    const at = (pipeline[side] ?? []).findIndex(({ state }) => state !== "up");
    if (at >= 0) return { kind: config[side]?.[at]?.type ?? side, state: pipeline[side]![at]! };
  }
  return undefined;
}

function again({ retry_at }: PlaceState, now: () => number): string {
  if (retry_at == null) return "";
  const seconds = Math.ceil((retry_at - now()) / 1000);
  return seconds > 0 ? `; tried again in ${seconds} s` : "; tried again now";
}
