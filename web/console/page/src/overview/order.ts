import type { Pipeline } from "../api/client";
import { WORST_FIRST, type Condition } from "../live/gauges.svelte";
import { stages } from "../graph/describe";

/** The pipelines, those first that are to be looked at first; then by name. */
export function worstFirst(
  pipelines: readonly Pipeline[],
  condition: (id: string) => Condition,
): Pipeline[] {
  return pipelines
    .map((pipeline) => ({ pipeline, rank: WORST_FIRST.indexOf(condition(pipeline.id)) }))
    .sort((a, b) => a.rank - b.rank || a.pipeline.id.localeCompare(b.pipeline.id))
    .map(({ pipeline }) => pipeline);
}

/** The pipelines whose name, or the kind of a part of them, has a text. */
export function found(pipelines: readonly Pipeline[], text: string): readonly Pipeline[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return pipelines;
  return pipelines.filter(
    (pipeline) =>
      pipeline.id.toLowerCase().includes(wanted) ||
      stages(pipeline).some(({ kind }) => kind.startsWith(wanted)),
  );
}
