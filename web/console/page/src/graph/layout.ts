import dagre from "@dagrejs/dagre";

export const CARD = { width: 256, height: 116 };
export const GRID = 20;
const APART = 60;
const BETWEEN = { cards: 36, layers: 90 };
/** A connected graph of more cards is put in plain layers: the other way takes seconds. */
const LARGE = 200;

export interface Placed {
  x: number;
  y: number;
}
export type Edge = readonly [from: string, to: string];

const snap = (n: number): number => Math.round(n / GRID) * GRID;

/**
 * Where every card stands that nobody has moved: layers from left to right, on the grid.
 *
 * Graphs that have nothing to do with each other are laid out apart and then put on shelves, so that a
 * hundred small ones fill the page instead of one column.
 */
export function layout(
  ids: readonly string[],
  edges: readonly Edge[],
  ratio = 1.6,
): Map<string, Placed> {
  const parts = components(ids, edges).map(one);
  const area = parts.reduce((sum, p) => sum + (p.width + APART) * (p.height + APART), 0);
  const most = Math.max(Math.sqrt(area * ratio), ...parts.map((p) => p.width));
  const places = new Map<string, Placed>();
  let x = 0,
    y = 0,
    shelf = 0;
  for (const part of parts.sort((a, b) => b.height - a.height)) {
    if (x > 0 && x + part.width > most) {
      x = 0;
      y += shelf + APART;
      shelf = 0;
    }
    for (const [id, at] of part.places) places.set(id, { x: snap(x + at.x), y: snap(y + at.y) });
    x += part.width + APART;
    shelf = Math.max(shelf, part.height);
  }
  return places;
}

interface Part {
  width: number;
  height: number;
  places: Map<string, Placed>;
}

function one({ ids, edges }: { ids: string[]; edges: Edge[] }): Part {
  if (ids.length === 1) return { ...CARD, places: new Map([[ids[0]!, { x: 0, y: 0 }]]) };
  if (ids.length > LARGE) return layers(ids, edges);
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: BETWEEN.cards, ranksep: BETWEEN.layers });
  graph.setDefaultEdgeLabel(() => ({}));
  // By number: a pipeline may be called as what every object of JavaScript has, `__proto__`.
  const named = new Map(ids.map((id, at) => [id, `${at}`]));
  for (const name of named.values()) graph.setNode(name, { ...CARD });
  for (const [from, to] of edges) graph.setEdge(named.get(from)!, named.get(to)!);
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  return {
    width,
    height,
    places: new Map(
      ids.map((id) => {
        const n = graph.node(named.get(id)!);
        return [id, { x: n.x - CARD.width / 2, y: n.y - CARD.height / 2 }];
      }),
    ),
  };
}

/** Every card right of all it reads, beside those that it reads on average; takes no time to speak of. */
function layers(ids: string[], edges: Edge[]): Part {
  const readers = new Map<string, string[]>(ids.map((id) => [id, []]));
  const unread = new Map(ids.map((id) => [id, 0]));
  for (const [from, to] of edges) {
    readers.get(from)!.push(to);
    unread.set(to, unread.get(to)! + 1);
  }
  const layer = new Map(ids.map((id) => [id, 0]));
  const ready = ids.filter((id) => !unread.get(id));
  for (const id of ready)
    for (const reader of readers.get(id)!) {
      layer.set(reader, Math.max(layer.get(reader)!, layer.get(id)! + 1));
      unread.set(reader, unread.get(reader)! - 1);
      if (!unread.get(reader)) ready.push(reader);
    }
  // What reads itself by others' help is never ready: it stands where it has come to.
  const sources = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const [from, to] of edges) sources.get(to)!.push(from);
  const columns: string[][] = [];
  for (const id of ids) (columns[layer.get(id)!] ??= []).push(id);
  const row = new Map<string, number>();
  const places = new Map<string, Placed>();
  columns.forEach((column, x) => {
    const beside = (id: string) => {
      const rows = sources.get(id)!.flatMap((source) => row.get(source) ?? []);
      return rows.length ? rows.reduce((sum, each) => sum + each, 0) / rows.length : 0;
    };
    column
      .map((id) => ({ id, at: beside(id) }))
      .sort((a, b) => a.at - b.at)
      .forEach(({ id }, y) => {
        row.set(id, y);
        places.set(id, {
          x: x * (CARD.width + BETWEEN.layers),
          y: y * (CARD.height + BETWEEN.cards),
        });
      });
  });
  const highest = Math.max(...columns.map((column) => column.length));
  return {
    width: columns.length * (CARD.width + BETWEEN.layers) - BETWEEN.layers,
    height: highest * (CARD.height + BETWEEN.cards) - BETWEEN.cards,
    places,
  };
}

/** The graphs that hang together, each with its edges, in the order of their first card. */
export function components(
  ids: readonly string[],
  edges: readonly Edge[],
): { ids: string[]; edges: Edge[] }[] {
  const root = new Map(ids.map((id) => [id, id]));
  const find = (id: string): string => {
    let at = id;
    while (root.get(at) !== at) {
      root.set(at, root.get(root.get(at)!)!);
      at = root.get(at)!;
    }
    return at;
  };
  const known = edges.filter(([a, b]) => root.has(a) && root.has(b));
  for (const [a, b] of known) root.set(find(a), find(b));
  const parts = new Map<string, { ids: string[]; edges: Edge[] }>();
  for (const id of ids) {
    const key = find(id);
    if (!parts.has(key)) parts.set(key, { ids: [], edges: [] });
    parts.get(key)!.ids.push(id);
  }
  for (const edge of known) parts.get(find(edge[0]))!.edges.push(edge);
  return [...parts.values()];
}
