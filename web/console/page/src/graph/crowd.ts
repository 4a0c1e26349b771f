import { CARD, type Placed } from "./layout";

const CELL = 400;
/** A line that runs closer by a card than this seems to belong to it. */
const CLEAR = 8;

/** Cards that stand somewhere, found by where they are. */
export class Crowd {
  #cells = new Map<string, Placed[]>();

  constructor(places: Iterable<Placed> = []) {
    for (const at of places) this.add(at);
  }

  add(at: Placed): void {
    for (const cell of cells(at.x, at.y, at.x + CARD.width, at.y + CARD.height)) {
      const there = this.#cells.get(cell);
      if (there) there.push(at);
      else this.#cells.set(cell, [at]);
    }
  }

  /** A card that another one at this place would cover a part of. */
  covered({ x, y }: Placed): Placed | undefined {
    return this.#near(x, y, x + CARD.width, y + CARD.height)[0];
  }

  /** The cards that a line runs over, but for those where it begins and ends. */
  crossed(line: readonly Placed[], from: Placed, to: Placed): Placed[] {
    const found = new Set<Placed>();
    line.slice(1).forEach((b, at) => {
      const a = line[at]!;
      const [x0, x1] = [Math.min(a.x, b.x), Math.max(a.x, b.x)];
      const [y0, y1] = [Math.min(a.y, b.y), Math.max(a.y, b.y)];
      const beside = this.#near(x0 - CLEAR, y0 - CLEAR, x1 + CLEAR, y1 + CLEAR);
      for (const card of beside) found.add(card);
    });
    found.delete(from);
    found.delete(to);
    return [...found];
  }

  #near(x0: number, y0: number, x1: number, y1: number): Placed[] {
    return cells(x0, y0, x1, y1)
      .flatMap((cell) => this.#cells.get(cell) ?? [])
      .filter(({ x, y }) => x < x1 && x + CARD.width > x0 && y < y1 && y + CARD.height > y0);
  }
}

function cells(x0: number, y0: number, x1: number, y1: number): string[] {
  const found: string[] = [];
  for (let column = Math.floor(x0 / CELL); column <= Math.floor(x1 / CELL); column++)
    for (let row = Math.floor(y0 / CELL); row <= Math.floor(y1 / CELL); row++)
      found.push(`${column} ${row}`);
  return found;
}
