import type { Condition } from "../live/gauges.svelte";
import { CARD } from "./layout";
import type { Raster } from "./nodes";
import type { Line } from "./route";

export const NAMES = [
  "ok",
  "bad",
  "warn",
  "line-strong",
  "text",
  "on-bad",
  "accent",
  "faint",
] as const;
export type Colours = Record<(typeof NAMES)[number], string>;

export interface Tile {
  id: string;
  x: number;
  y: number;
  condition: Condition;
  isChosen: boolean;
}

/** Each state has a shape of its own, from afar as well. */
const SHAPES: Partial<Record<Condition, string>> = {
  failed: "■",
  failing: "▲",
  degraded: "◆",
  starting: "◔",
  stopped: "○",
};
const READABLE = 0.16;
const LONGEST = 20;
const shortened = new Map<string, string>();

export function drawLines(
  pen: CanvasRenderingContext2D,
  lines: readonly { turns: Line; isBroken: boolean }[],
  colours: Colours,
  zoom: number,
  sight: Raster,
): void {
  pen.strokeStyle = colours["line-strong"];
  pen.lineWidth = 1.2 / zoom;
  for (const broken of [false, true]) {
    pen.setLineDash(broken ? [5 / zoom, 5 / zoom] : []);
    pen.beginPath();
    for (const { turns, isBroken } of lines)
      if (isBroken === broken && isInSight(turns, sight)) {
        pen.moveTo(turns[0]!.x, turns[0]!.y);
        for (const { x, y } of turns) pen.lineTo(x, y);
      }
    pen.stroke();
  }
  pen.setLineDash([]);
}

function isInSight(line: Line, sight: Raster): boolean {
  const [start, end] = [line[0]!, line.at(-1)!];
  if (Math.max(start.x, end.x) < sight.x0 || Math.min(start.x, end.x) > sight.x1) return false;
  return !(line.every(({ y }) => y < sight.y0) || line.every(({ y }) => y > sight.y1));
}

export function drawTiles(
  pen: CanvasRenderingContext2D,
  tiles: readonly Tile[],
  colours: Colours,
  zoom: number,
  sight: Raster,
): void {
  pen.textBaseline = "middle";
  for (const { id, x, y, condition, isChosen } of tiles) {
    if (x + CARD.width < sight.x0 || x > sight.x1) continue;
    if (y + CARD.height < sight.y0 || y > sight.y1) continue;
    const isBad = condition === "failed" || condition === "failing";
    const colour = isBad
      ? colours.bad
      : condition === "running"
        ? colours.ok
        : condition === "stopped"
          ? colours.faint
          : colours.warn;
    pen.fillStyle = colour;
    pen.globalAlpha = isBad ? 1 : 0.32;
    pen.beginPath();
    pen.roundRect(x, y, CARD.width, CARD.height, 14);
    pen.fill();
    pen.globalAlpha = 1;
    if (isChosen) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 3 / zoom;
      pen.stroke();
    }
    const shape = SHAPES[condition];
    const middle = y + CARD.height / 2;
    pen.fillStyle = isBad ? colours["on-bad"] : colours.text;
    pen.textAlign = "center";
    if (zoom > READABLE) {
      pen.font = "600 30px 'Inter Variable', sans-serif";
      const text = `${shape ? `${shape} ` : ""}${short(id)}`;
      pen.fillText(text, x + CARD.width / 2, middle, CARD.width - 16);
    } else if (shape) {
      pen.font = "80px sans-serif";
      pen.fillText(shape, x + CARD.width / 2, middle);
    }
  }
}

/** As much of a name as a tile has room for; nothing in it turns the direction of what follows. */
function short(id: string): string {
  let text = shortened.get(id);
  if (text === undefined) {
    const letters = [...id.replace(/\p{Cc}/gu, " ")];
    const cut = letters.length > LONGEST ? [...letters.slice(0, LONGEST - 1), "…"] : letters;
    shortened.set(id, (text = `\u2068${cut.join("")}\u2069`));
  }
  return text;
}
