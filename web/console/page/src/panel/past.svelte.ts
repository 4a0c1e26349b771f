import { api, type History } from "../api/client";

export type Bucket = History["buckets"][number];
export type Signature = History["errors"][number];
export type Resolution = History["resolution"];

/** How far back each resolution goes, in seconds. */
export const REACH: Record<Resolution, number> = { fine: 30 * 60, coarse: 24 * 3600 };
const EACH_SECONDS = 5;

/** What a pipeline has counted, and how it failed: kept while it is looked at, asked for only what is new. */
export class Past {
  buckets = $state.raw<readonly Bucket[]>([]);
  signatures = $state.raw<readonly Signature[]>([]);
  /** Distinct failures that are not listed any more. */
  dropped = $state(0);
  /** Seconds of a bucket. */
  width = $state(EACH_SECONDS);
  isLoaded = $state(false);
  #timer: ReturnType<typeof setInterval>;

  constructor(
    readonly id: string,
    readonly resolution: Resolution,
  ) {
    void this.#load();
    this.#timer = setInterval(() => document.hidden || void this.#load(), EACH_SECONDS * 1000);
  }

  /** How many failures there were. */
  get failures(): number {
    return this.signatures.reduce((sum, { count }) => sum + count, 0);
  }

  async #load(): Promise<void> {
    // The last bucket still fills: it is asked for again.
    const past = await api
      .history(this.id, this.resolution, this.buckets.at(-2)?.start)
      .catch(() => undefined);
    if (!past) return; // the server is gone; what is known stays
    this.width = past.bucket_secs;
    this.buckets = joined(this.buckets, past.buckets, REACH[this.resolution]);
    this.signatures = past.errors;
    this.dropped = past.dropped_signatures;
    this.isLoaded = true;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

/** What was known, with what is told now in its place, as far back as `reach` seconds before the last. */
export function joined(
  known: readonly Bucket[],
  told: readonly Bucket[],
  reach: number,
): readonly Bucket[] {
  const [first] = told;
  if (!first) return known;
  const from = told.at(-1)!.start - reach;
  return [...known.filter(({ start }) => start < first.start && start > from), ...told];
}

/** A column per figure, as a plot wants them: `start` in seconds, messages a second, failures; null in gaps. */
export function columns(
  buckets: readonly Bucket[],
  width: number,
): [number[], ...(number | null)[][]] {
  const [starts, into, out, failures]: [number[], ...(number | null)[][]] = [[], [], [], []];
  let due: number | undefined;
  for (const { start, inbound, outbound, errors } of buckets) {
    if (due !== undefined && start > due) {
      starts.push(due);
      for (const column of [into, out, failures]) column!.push(null);
    }
    starts.push(start);
    into!.push(inbound / width);
    out!.push(outbound / width);
    failures!.push(errors || null);
    due = start + width;
  }
  return [starts, into!, out!, failures!];
}
