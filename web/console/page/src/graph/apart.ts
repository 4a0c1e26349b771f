import { Crowd } from "./crowd";
import { CARD, GRID, type Placed } from "./layout";

/**
 * Where all cards stand: those that somebody has moved where they were put, the others where they are
 * laid out, or below what stands there.
 */
export function apart(
  laid: ReadonlyMap<string, Placed>,
  moved: ReadonlyMap<string, Placed>,
): Map<string, Placed> {
  const places = new Map([...moved].filter(([id]) => laid.has(id)));
  if (!places.size) return new Map(laid);
  const crowd = new Crowd(places.values());
  for (const [id, at] of laid) {
    if (places.has(id)) continue;
    let free = at;
    for (let below = crowd.covered(free); below; below = crowd.covered(free))
      free = { x: at.x, y: Math.ceil((below.y + CARD.height + GRID) / GRID) * GRID };
    places.set(id, free);
    crowd.add(free);
  }
  return places;
}
