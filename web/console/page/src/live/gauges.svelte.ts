import type { Failure, PipelinePulse, Pulse, RecentHistory } from "../api/client";
import { EMPTY, filled, later, rateOf, type Minute } from "./rates";

export { SECONDS } from "./rates";
/** For so long a failure is what is to be seen of a pipeline. */
const RECENT_MS = 15 * 60_000;
/** What has been on the disk for so long waits there. */
const WAITS_MS = 2000;
/** Seconds between two pulses that are a gap. */
const LONG = 2.5;

export type Condition = "failed" | "failing" | "degraded" | "starting" | "stopped" | "running";
/** What is to be looked at first. */
export const WORST_FIRST: readonly Condition[] = [
  "failed",
  "degraded",
  "failing",
  "starting",
  "stopped",
  "running",
];

/** What a card shows of one pipeline. Written once a second at most, whatever the number of messages. */
export class Gauge {
  inRate = $state(0);
  outRate = $state(0);
  held = $state(0);
  /** Bytes that wait on the disk; 0 while what is there comes and goes. */
  stored = $state(0);
  inFlight = $state(0);
  /** Failures since the pipeline was started. */
  failures = $state(0);
  /** What the last of them said. */
  error = $state("");
  condition = $state<Condition>("running");
  inLine = $state.raw<Minute>(EMPTY);
  outLine = $state.raw<Minute>(EMPTY);

  #last: PipelinePulse | undefined;
  #in: number | null = null;
  #out: number | null = null;
  #failedAt = 0;
  #stored: PipelinePulse["stored"];

  /**
   * Take what a pulse tells; what was counted before is not of this second. Return whether it tells of
   * failures that no event has told of: they were before the stream was open.
   */
  take(pulse: PipelinePulse, isAfterGap: boolean, now: number): boolean {
    const before = this.#last;
    const isNew = before?.started_at !== pulse.started_at;
    this.#last = pulse;
    if (before && !isAfterGap) {
      this.#in = (this.#in ?? 0) + pulse.in - (isNew ? 0 : before.in);
      this.#out = (this.#out ?? 0) + pulse.out - (isNew ? 0 : before.out);
    }
    if (before && isNew) this.error = "";
    this.held = pulse.held;
    this.#stored = pulse.stored;
    this.inFlight = pulse.in_flight;
    this.failures = pulse.failed;
    const known = isNew ? 0 : (before?.failed ?? 0);
    return pulse.failed > known && now - this.#failedAt > RECENT_MS;
  }

  fail(why: string, at: number): void {
    if (at < this.#failedAt) return;
    this.error = why;
    this.#failedAt = at;
  }

  fill(columns: RecentHistory["pipelines"][string], history: RecentHistory, now: number): void {
    const { start, bucket_secs } = history;
    this.inLine = filled(this.inLine, columns.inbound, start, bucket_secs, now);
    this.outLine = filled(this.outLine, columns.outbound, start, bucket_secs, now);
    this.#rate();
  }

  /** A second has gone by, or so; or `gap` seconds before it that nothing was heard of. */
  tick(seconds: number, gap: number, now: number): void {
    const isKnown = this.#last !== undefined && !gap;
    const each = (count: number | null) => (isKnown ? (count ?? 0) / seconds : null);
    this.inLine = later(this.inLine, gap, each(this.#in));
    this.outLine = later(this.outLine, gap, each(this.#out));
    this.#in = this.#out = null;
    this.#rate();
    this.condition = this.#condition(now);
    const { oldest, bytes } = this.#stored ?? {};
    this.stored = oldest != null && now - oldest > WAITS_MS ? bytes! : 0;
  }

  #rate(): void {
    this.inRate = rateOf(this.inLine);
    this.outRate = rateOf(this.outLine);
  }

  #condition(now: number): Condition {
    const status = this.#last?.status ?? "running";
    if (status !== "running" && status !== "starting") return status;
    if (this.#last?.health === "degraded" && status === "running") return "degraded";
    if (this.failures && now - this.#failedAt < RECENT_MS) return "failing";
    return status;
  }
}

/** The gauges of all pipelines, by id. */
export class Gauges {
  #of = new Map<string, Gauge>();
  /** Milliseconds since 1970 at the server, as the last pulse has it. */
  now = $state(0);
  /** Messages that come in a second, all pipelines together. */
  total = $state(0);

  of(pipeline: string): Gauge {
    let gauge = this.#of.get(pipeline);
    if (!gauge) this.#of.set(pipeline, (gauge = new Gauge()));
    return gauge;
  }

  /** Take a pulse; return what is missing: the minute before it, or failures that nobody has told of. */
  take(pulse: Pulse): "minute" | "failures" | undefined {
    const isFirst = !this.now;
    const seconds = isFirst ? 1 : (pulse.ts - this.now) / 1000;
    const gap = seconds < LONG ? 0 : Math.round(seconds) - 1;
    const untold = Object.entries(pulse.pipelines).filter(([id, figures]) =>
      this.of(id).take(figures, gap > 0, pulse.ts),
    ).length;
    // A stream that is opened again tells at once how it is, in the middle of a second.
    if (seconds < 0.5) return untold ? "failures" : undefined;
    this.now = pulse.ts;
    let total = 0;
    for (const gauge of this.#of.values()) {
      gauge.tick(seconds, gap, pulse.ts);
      total += gauge.inRate;
    }
    this.total = total;
    if (isFirst || gap > 0) return "minute";
    return untold ? "failures" : undefined;
  }

  /** Forget the gauges of pipelines that are there no more, and have one for each that is. */
  keep(ids: readonly string[]): void {
    const there = new Set(ids);
    for (const id of this.#of.keys()) if (!there.has(id)) this.#of.delete(id);
    for (const id of ids) this.of(id);
  }

  /** Fill what nobody has told with what the server has counted. */
  fill(history: RecentHistory): void {
    const now = Math.floor(this.now / 1000);
    for (const [id, columns] of Object.entries(history.pipelines))
      this.of(id).fill(columns, history, now);
  }

  /** Take failures from before the page was opened. */
  recall(failures: readonly Failure[]): void {
    for (const { pipeline_id, message, last_seen } of failures)
      this.of(pipeline_id).fail(message, last_seen);
  }
}
