import type { Edge, Node } from "@xyflow/svelte";
import type { Pipeline } from "../api/client";
import { CARD, type Placed } from "./layout";
import { name, type Line } from "./route";
import type { Sight } from "./view.svelte";

type Places = ReadonlyMap<string, Placed>;
export interface Raster {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

/** The pipelines whose cards are in a part of the graph. */
export const inSight = (pipelines: readonly Pipeline[], places: Places, part: Raster): Pipeline[] =>
  pipelines.filter(({ id }) => {
    const { x, y } = places.get(id)!;
    return x + CARD.width > part.x0 && x < part.x1 && y + CARD.height > part.y0 && y < part.y1;
  });

/** The cards as the library has them; those of which nothing is other stay the same objects. */
export function cards(
  seen: readonly Pipeline[],
  places: Places,
  chosen: string | undefined,
  before: readonly Node[],
): Node[] {
  const known = new Map(before.map((node) => [node.id, node]));
  return seen.map((pipeline) => {
    const was = known.get(pipeline.id);
    const at = places.get(pipeline.id)!;
    const isOpen = pipeline.id === chosen;
    if (!was)
      return {
        id: pipeline.id,
        type: "card",
        position: at,
        width: CARD.width,
        height: CARD.height,
        ariaLabel: pipeline.id,
        data: { pipeline, isOpen },
      };
    const isSame = was.data.pipeline === pipeline && was.data.isOpen === isOpen;
    const isThere = was.dragging || (was.position.x === at.x && was.position.y === at.y);
    if (isSame && isThere) return was;
    // Spreading what there was keeps the library's own measurements.
    return { ...was, position: isThere ? was.position : at, data: { pipeline, isOpen } };
  });
}

/** The lines between cards that are there, as the library has them. */
export function wires(
  pairs: readonly (readonly [string, string])[],
  there: ReadonlySet<string>,
  lines: ReadonlyMap<string, Line>,
  before: readonly Edge[],
): Edge[] {
  const known = new Map(before.map((edge) => [edge.id, edge]));
  return pairs
    .filter(([source, target]) => there.has(source) && there.has(target))
    .map(([source, target]) => {
      const id = name(source, target);
      const line = lines.get(id);
      const was = known.get(id);
      if (was && was.data?.line === line) return was;
      const ariaLabel = `${source} to ${target}`;
      return {
        ...was,
        id,
        source,
        target,
        type: "wire",
        selectable: false,
        ariaLabel,
        data: { line },
      };
    });
}

/** The pipeline whose tile is at a point of the canvas. */
export function tileAt(point: Placed, places: Places, { x, y, zoom }: Sight): string | undefined {
  const [left, top] = [(point.x - x) / zoom, (point.y - y) / zoom];
  for (const [id, at] of places)
    if (left >= at.x && left <= at.x + CARD.width && top >= at.y && top <= at.y + CARD.height)
      return id;
  return undefined;
}
