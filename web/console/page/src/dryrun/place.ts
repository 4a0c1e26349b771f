import { marbles, type Lane, type Marble } from "./steps";
import type { Handed } from "./answer";

/** Marbles that stand one above the other. */
const ROWS = 3;

/** Sizes of what is drawn, in pixels: of what a mouse points at, and of what a finger does. */
export interface Sizes {
  /** Of a marble, from its middle. */
  r: number;
  /** From one marble to the next. */
  step: number;
  /** Of a lane. */
  height: number;
}
export const sizes = (isNarrow: boolean): Sizes =>
  isNarrow ? { r: 18, step: 40, height: 140 } : { r: 10, step: 23, height: 93 };
/** Of one batch, and batches of one moment, that are drawn; more is a number behind them. */
const MOST_MARBLES = 24;
const MOST_BATCHES = 6;
/** Marbles that are drawn of one lane, and of all together. */
const MOST_OF_LANE = 300;
const MOST_OF_ALL = 3000;
const GAP = 6;

export interface Placed {
  marble: Marble;
  x: number;
  y: number;
}

/** A batch as a box. `more` messages of it have no marble. */
export interface Box {
  batch: Handed;
  x: number;
  width: number;
  marbles: Placed[];
  more: number;
}

/** What came out of a stage at one moment; `more` messages are in batches that have no box. */
export interface Group {
  at: number;
  boxes: Box[];
  width: number;
  more: number;
}

/** What is drawn of a lane, from its moments' places to the right; `hidden` messages are not. */
export interface Drawn {
  lane: Lane;
  groups: Group[];
  hidden: number;
}

/** What is drawn of each lane. */
export function drawn(all: Lane[], size: Sizes): Drawn[] {
  const most = Math.max(MOST_MARBLES, Math.min(MOST_OF_LANE, Math.floor(MOST_OF_ALL / all.length)));
  return all.map((lane) => {
    const groups = new Map<number, Group>();
    let left = most;
    for (const batch of lane.batches) {
      const group = groups.get(batch.at) ?? { at: batch.at, boxes: [], width: 0, more: 0 };
      groups.set(batch.at, group);
      const count = Math.min(batch.messages.length, MOST_MARBLES, left);
      if (!count || group.boxes.length === MOST_BATCHES) group.more += batch.messages.length;
      else {
        group.boxes.push(box(batch, lane.stage, count, group.width, size));
        group.width += group.boxes.at(-1)!.width + GAP;
        left -= count;
      }
    }
    const shown = [...groups.values()].filter((group) => group.boxes.length);
    for (const group of shown) if (group.more) group.width += 40;
    const total = lane.batches.reduce((sum, batch) => sum + batch.messages.length, 0);
    const placed = shown.flatMap((group) => group.boxes.flatMap((each) => each.marbles)).length;
    return { lane, groups: shown, hidden: total - placed };
  });
}

function box(
  batch: Handed,
  stage: number,
  count: number,
  x: number,
  { r, step, height }: Sizes,
): Box {
  const rows = Math.min(ROWS, count);
  const more = batch.messages.length - count;
  return {
    batch,
    x,
    more,
    width: Math.ceil(count / rows) * step + 9 + (more ? 36 : 0),
    marbles: marbles(batch, stage, count).map((marble, i) => ({
      marble,
      x: x + 6 + r + Math.floor(i / rows) * step,
      y: height / 2 + ((i % rows) - (rows - 1) / 2) * step,
    })),
  };
}

/** The axis: where a time is. Times stand as far apart as they are, and as what is drawn there needs. */
export class Axis {
  #at: number[];
  #x: number[] = [];
  readonly width: number;

  /**
   * `room` is what there is for all times from 0 to `end`; where boxes of one moment would cover those of the next
   * the axis is stretched there, and becomes wider than that.
   */
  constructor(groups: Group[], end: number, room: number) {
    const needs = new Map<number, number>([
      [0, 0],
      [end, 0],
    ]);
    for (const { at, width } of groups) needs.set(at, Math.max(needs.get(at) ?? 0, width));
    this.#at = [...needs.keys()].sort((a, b) => a - b);
    let least = LEFT;
    for (const at of this.#at) {
      this.#x.push(Math.max(LEFT + (end ? at / end : 0) * (room - LEFT - RIGHT), least));
      least = this.#x.at(-1)! + needs.get(at)!;
    }
    this.width = Math.max(room, least + RIGHT);
  }

  x(at: number): number {
    const after = Math.max(
      1,
      this.#at.findIndex((each) => each >= at),
    );
    const [a, b] = [this.#at[after - 1]!, this.#at[after] ?? this.#at[after - 1]!];
    const [from, to] = [this.#x[after - 1]!, this.#x[after] ?? this.#x[after - 1]!];
    return b > a ? from + ((at - a) / (b - a)) * (to - from) : from;
  }
}
const LEFT = 14;
const RIGHT = 24;

/** One slice of a ring, for each message that something was made of. */
export function slices(count: number, x: number, y: number, r: number): string[] {
  const point = (turn: number) =>
    `${(x + r * Math.sin(2 * Math.PI * turn)).toFixed(2)} ${(y - r * Math.cos(2 * Math.PI * turn)).toFixed(2)}`;
  return Array.from({ length: count }, (_, i) => {
    const long = count === 1 ? 1 : 0;
    return `M${x} ${y}L${point(i / count)}A${r} ${r} 0 ${long} 1 ${point((i + 1) / count)}Z`;
  });
}
