/** Times of a dry run: seconds of virtual time, which can be a thousandth or a year. */
const UNITS: readonly [name: string, seconds: number][] = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
  ["ms", 0.001],
];
const NAMES: Record<string, number> = {
  ...Object.fromEntries(UNITS),
  m: 60,
  sec: 1,
  second: 1,
  seconds: 1,
  minutes: 60,
  hour: 3600,
  hours: 3600,
  day: 86400,
  days: 86400,
};
/** The server's bound. */
export const MOST_SECONDS = 1e9;

/** A time in words: `250 ms`, `5 s`, `1 min 30 s`, `2 h 5 min`; at most two units. */
export function spelled(seconds: number): string {
  const rest = Math.round(seconds * 1000) / 1000;
  if (rest < 1) return rest ? `${Math.round(rest * 1000)} ms` : "0 s";
  if (rest < 60) return `${rest} s`;
  const first = UNITS.findIndex(([, size]) => rest >= size);
  const [name, size] = UNITS[first]!;
  const [finer, fine] = UNITS[first + 1]!;
  const whole = Math.floor(rest / size);
  const more = Math.floor((rest - whole * size) / fine);
  return more ? `${whole} ${name} ${more} ${finer}` : `${whole} ${name}`;
}

/** Read a time such as `5`, `250 ms` or `1 h 30 min`; what is none is undefined. */
export function seconds(text: string): number | undefined {
  if (/^\s*\d+(\.\d+)?\s*$/.test(text)) return bounded(Number(text));
  if (!/^(\s*\d+(\.\d+)?\s*[a-z]+)+\s*$/i.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    const size = NAMES[unit!.toLowerCase()];
    if (size === undefined) return undefined;
    total += Number(amount) * size;
  }
  return bounded(total);
}

const bounded = (value: number): number | undefined => (value <= MOST_SECONDS ? value : undefined);

const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((ms) => ms / 1000),
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3600),
  ...[1, 2, 7, 14, 30, 90, 365, 730, 1825, 3650].map((days) => days * 86400),
];

/** Moments to mark between 0 and the end, at most so many, by a step that a clock knows. */
export function ticks(end: number, most: number): number[] {
  const step = STEPS.find((each) => end / each <= most) ?? end / most;
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step);
}

/** The least of the round times that a time fits into, with some room behind it. */
export function around(time: number): number {
  return STEPS.find((step) => step >= time * 1.2) ?? time * 1.2;
}
