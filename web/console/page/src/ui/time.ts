/** Times as they are shown: of the day where the reader is. Milliseconds since 1970 unless said otherwise. */
const two = (n: number) => String(n).padStart(2, "0");

/** `09:02:40` */
export function clock(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** `09:02:40.125` */
export const fine = (ms: number): string => `${clock(ms)}.${String(ms % 1000).padStart(3, "0")}`;

/** `2026-03-01 09:02:40` */
export function date(ms: number): string {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

/** `40 s`, `2 min`, `3 h`, `5 d` */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}
