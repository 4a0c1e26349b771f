import { Refusal, type Diagnostic } from "../api/client";
import { says } from "../graph/describe";
import { session } from "../live/session.svelte";
import { width } from "../ui/width.svelte";
import type { Answer, Handed } from "./answer";
import type { Batch } from "./given";
import { Axis, drawn, sizes } from "./place";
import { perform } from "./request";
import { lanes, moments, originsOf, type Chosen } from "./steps";
import { around } from "./times";

/** What is tried: as much of a config as a dry run needs. */
export interface Config {
  transforms?: { type: string; [key: string]: unknown }[];
  state?: unknown;
}

/** What could not even be tried. */
export interface Fault {
  text: string;
  diagnostics: Diagnostic[];
}

/** One dry run on the screen: what goes in, what came of it, where its clock stands and what is chosen. */
export class Run {
  given = $state.raw<Batch[]>([]);
  answer = $state.raw<Answer>();
  fault = $state.raw<Fault>();
  isRunning = $state(false);
  /** What the answer is about: it stays while something else is written. */
  #tried = $state.raw<Batch[]>([]);
  end = $state(0);
  /** Whether somebody has said how far time goes; else it goes as far as something is to be expected. */
  isEndWanted = false;
  now = $state(0);
  chosen = $state.raw<Chosen>();
  /** One origin of what is chosen, if its way alone is looked at. */
  origin = $state<number>();
  fromLive = $state(true);
  /** What it does outside of the page when it is run; empty: nothing, undefined: nobody knows yet. */
  acts = $state.raw<string[]>();
  #turn = 0;
  #text: string | undefined;

  /** A run of a config; `written` is asked for its text until there is an answer. */
  constructor(
    readonly config: Config,
    readonly written: () => Promise<string>,
  ) {
    this.end = usual(config, 0);
  }

  readonly transforms = $derived.by(() =>
    (this.config.transforms ?? []).map((each) => ({ kind: each.type, says: summary(each) })),
  );
  readonly lanes = $derived(lanes(this.#tried, this.transforms, this.answer));
  readonly size = $derived(sizes(width.isNarrow));
  readonly drawn = $derived(drawn(this.lanes, this.size));
  readonly moments = $derived(moments(this.lanes, this.end));
  readonly messages = $derived(this.#tried.flatMap((batch) => batch.messages));
  readonly #lit = $derived(
    this.origin === undefined ? new Set(originsOf(this.chosen)) : new Set([this.origin]),
  );

  /** The axis, where there is so much room for it. */
  axis(room: number): Axis {
    return new Axis(
      this.drawn.flatMap((each) => each.groups),
      this.end,
      room,
    );
  }

  /** Look at what would fail whatever comes, and at what it would do outside, before anything is tried. */
  async prepare(): Promise<void> {
    await this.#perform([]);
    this.acts = this.answer?.notes;
  }

  /** Whether it may run without being asked to: it does nothing outside of the page. */
  get isHarmless(): boolean {
    return this.acts?.length === 0;
  }

  async perform(): Promise<void> {
    if (!this.acts) await this.prepare();
    await this.#perform(this.given);
  }

  async #perform(given: Batch[]): Promise<void> {
    const turn = ++this.#turn;
    this.isRunning = true;
    try {
      const last = given.at(-1)?.at ?? 0;
      const seconds = this.isEndWanted ? Math.max(this.end, last) : usual(this.config, last);
      const config = (this.#text ??= await this.written());
      const answer = await perform({ config, given, seconds, fromLive: this.fromLive });
      if (turn !== this.#turn) return;
      this.end = seconds;
      this.#show(given, answer, undefined);
    } catch (cause) {
      if (turn !== this.#turn) return;
      this.#show(given, undefined, {
        text: cause instanceof Error ? cause.message : String(cause),
        diagnostics: cause instanceof Refusal ? (cause.diagnostics ?? []) : [],
      });
    } finally {
      if (turn === this.#turn) this.isRunning = false;
    }
  }

  #show(given: Batch[], answer: Answer | undefined, fault: Fault | undefined): void {
    [this.#tried, this.answer, this.fault] = [given, answer, fault];
    this.now = this.end;
    this.choose(undefined);
  }

  choose(chosen: Chosen): void {
    this.chosen = chosen;
    this.origin = undefined;
  }

  isChosen(batch: Handed, index: number): boolean {
    const chosen = this.chosen;
    return (
      !!chosen &&
      "marble" in chosen &&
      chosen.marble.batch === batch &&
      chosen.marble.index === index
    );
  }

  /** Whether something with these origins fades, because something else is chosen. */
  fades(origins: number[]): boolean {
    return this.chosen !== undefined && !origins.some((origin) => this.#lit.has(origin));
  }

  /** Set the clock to the moment after or before this one; behind the last is the first. */
  step(by: 1 | -1): void {
    const here = this.moments.findIndex((at) => at >= this.now);
    const count = this.moments.length;
    this.now = this.moments[(here + by + count) % count]!;
  }
}

/** The longest time that stands in the chain after the last batch is in, and some more. */
function usual(config: Config, last: number): number {
  const times = (config.transforms ?? []).map((each) => Number(each.seconds) || 0);
  return around(last + Math.max(5, ...times));
}

/** One line about a transform; of a draft that is no such transform none. */
function summary(transform: { type: string }): string {
  try {
    return says(transform);
  } catch {
    return "";
  }
}
