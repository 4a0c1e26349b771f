/** A minute of counts, one number for each second, the newest last; null: nobody knows. */
export const SECONDS = 60;
export type Minute = readonly (number | null)[];

export const EMPTY: Minute = Array<null>(SECONDS).fill(null);
const FEW = 5;

/** Add the seconds that have gone by: those that nobody was told of are a gap. */
export function later(minute: Minute, gap: number, count: number | null): Minute {
  return [...minute, ...Array<null>(Math.min(gap, SECONDS)).fill(null), count].slice(-SECONDS);
}

/**
 * Fill gaps with what a history has counted.
 *
 * `starts` are the buckets' beginnings in seconds, `now` the second of the newest count.
 */
export function filled(
  minute: Minute,
  counts: Minute,
  starts: readonly number[],
  each: number,
  now: number,
): Minute {
  const known = [...minute];
  starts.forEach((start, bucket) => {
    const count = counts[bucket] ?? null;
    const whole = Math.min(each, now - start);
    if (count === null || whole <= 0) return;
    for (let second = start; second < start + whole; second++) {
      const at = SECONDS - 1 - (now - second);
      if (at >= 0 && at < SECONDS) known[at] ??= count / whole;
    }
  });
  return known;
}

/** Messages a second: of the last two seconds, or of five where so few pass that they come and go. */
export function rateOf(minute: Minute): number {
  const wide = mean(minute.slice(-FEW));
  return wide < FEW ? wide : mean(minute.slice(-2));
}

function mean(counts: Minute): number {
  const known = counts.filter((count) => count !== null);
  return known.length ? known.reduce((sum, count) => sum + count, 0) / known.length : 0;
}
