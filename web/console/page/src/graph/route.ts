import { Crowd } from "./crowd";
import { CARD, type Placed } from "./layout";

const ROUND = 10;
const LANE = 8;
const LANES = 5;
/** How far a line runs from a card before it turns, before it arrives, and from one that it goes around. */
const APART = { leaving: 45, arriving: 28, around: 18 };
/** Between layers that are next to each other nothing stands in the way. */
const NEXT = 130;

/** The turns of a line between two cards, from end to end: right angles, through channels. */
export type Line = readonly Placed[];

/**
 * Run all lines: those of one card together, beside those of others in its layer, and around cards
 * that stand in the way where there is a way around.
 */
export function lines(
  edges: readonly (readonly [string, string])[],
  places: ReadonlyMap<string, Placed>,
): Map<string, Line> {
  const crowd = new Crowd(places.values());
  const lane = lanes(edges, places);
  const found = new Map<string, Line>();
  for (const [from, to] of edges) {
    const [a, b] = [places.get(from), places.get(to)];
    if (a && b) found.set(name(from, to), between(a, b, lane.get(from)!, crowd));
  }
  return found;
}

/** What a line is called: ids may hold anything. */
export const name = (from: string, to: string): string => JSON.stringify([from, to]);

/** The line between two cards, where it leaves and arrives. */
export function straight(start: Placed, end: Placed, lane = 0): Line {
  const middle = (start.x + end.x) / 2 + lane;
  return [start, { x: middle, y: start.y }, { x: middle, y: end.y }, end];
}

function between(from: Placed, to: Placed, lane: number, crowd: Crowd): Line {
  const start = { x: from.x + CARD.width, y: from.y + CARD.height / 2 };
  const end = { x: to.x, y: to.y + CARD.height / 2 };
  const direct = straight(start, end, lane);
  if (end.x > start.x && end.x - start.x < NEXT) return direct;
  const [near, far] = [start.x + APART.leaving + lane, end.x - APART.arriving + lane];
  const turns = (x: number): Line => [start, { x, y: start.y }, { x, y: end.y }, end];
  const around = (y: number): Line => [
    start,
    { x: near, y: start.y },
    { x: near, y },
    { x: far, y },
    { x: far, y: end.y },
    end,
  ];
  const tries = [turns(near), turns(far), ...(end.x > start.x ? [direct] : [])];
  const inTheWay = tries.flatMap((line) => crowd.crossed(line, from, to));
  const detours = inTheWay.flatMap(({ y }) => [
    around(y - APART.around),
    around(y + CARD.height + APART.around),
  ]);
  let best = direct;
  let least = Infinity;
  for (const line of [...tries, ...detours]) {
    const cost = crowd.crossed(line, from, to).length * 10_000 + length(line) + 60 * line.length;
    if (cost < least) [best, least] = [line, cost];
  }
  return best;
}

const length = (line: Line): number =>
  line.reduce((sum, { x, y }, at) => {
    const before = line[at - 1];
    return before ? sum + Math.abs(x - before.x) + Math.abs(y - before.y) : sum;
  }, 0);

/** The path of a line, its turns rounded. */
export function path(line: Line): string {
  const first = line[0]!;
  let text = `M${first.x} ${first.y}`;
  for (let at = 1; at < line.length - 1; at++) {
    const [a, turn, b] = [line[at - 1]!, line[at]!, line[at + 1]!];
    const into = Math.abs(turn.x - a.x) + Math.abs(turn.y - a.y);
    const out = Math.abs(b.x - turn.x) + Math.abs(b.y - turn.y);
    const round = Math.min(ROUND, into / 2, out / 2);
    const [p, q] = [towards(turn, a, round), towards(turn, b, round)];
    text += `L${p.x} ${p.y}Q${turn.x} ${turn.y} ${q.x} ${q.y}`;
  }
  const last = line.at(-1)!;
  return `${text}L${last.x} ${last.y}`;
}

const towards = (from: Placed, to: Placed, far: number): Placed => ({
  x: from.x + Math.sign(to.x - from.x) * far,
  y: from.y + Math.sign(to.y - from.y) * far,
});

/** How far off the middle of a channel each card's lines run. */
function lanes(
  edges: readonly (readonly [string, string])[],
  places: ReadonlyMap<string, Placed>,
): Map<string, number> {
  const columns = new Map<number, number>();
  const found = new Map<string, number>();
  for (const [from] of edges) {
    const at = places.get(from);
    if (!at || found.has(from)) continue;
    const number = columns.get(at.x) ?? 0;
    columns.set(at.x, number + 1);
    found.set(from, ((number % LANES) - Math.floor(LANES / 2)) * LANE);
  }
  return found;
}

/** How wide a line is drawn: the logarithm of its messages a second. */
export const thickness = (rate: number): number =>
  rate > 0 ? 1.5 + Math.min(5, Math.log10(1 + rate) * 2) : 1.2;
