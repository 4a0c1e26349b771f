const LONGEST = 64;

/** The name that is most like another one; undefined where none is like it. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase().slice(0, LONGEST);
  let found: string | undefined;
  let least = Math.max(3, Math.ceil(wanted.length / 2));
  for (const each of known) {
    const other = each.toLowerCase().slice(0, LONGEST);
    const far = other.startsWith(wanted) ? 1 : distance(wanted, other);
    if (far < least) [found, least] = [each, far];
  }
  return found;
}

/** How many letters are to be changed, added or left out. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    row = next;
  }
  return row[b.length]!;
}
