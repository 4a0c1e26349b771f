import { layout, type Edge } from "./layout";

/** Lays a graph out beside the page, which goes on meanwhile. */
export interface Wanted {
  turn: number;
  ids: readonly string[];
  edges: readonly Edge[];
}

self.onmessage = ({ data }: MessageEvent<Wanted>) =>
  self.postMessage({ turn: data.turn, places: layout(data.ids, data.edges) });
