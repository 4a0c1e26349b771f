import type { Told } from "../live/feed";
import { isCut } from "../ui/json";

/** A batch, or a failure. */
export interface Row {
  n: number;
  ts: number;
  stage: Told["stage"];
  component: number | null;
  /** Messages of the batch; of a failure: how many it tells of. */
  total: number;
  /** Messages of this stage that passed before without being shown. */
  skipped: number;
  /** Each as JSON text. */
  messages: string[];
  error?: string;
}
export type Wanted = "all" | "input" | "output" | "error";

const KEPT = 300;
const KEPT_CHARACTERS = 4_000_000;

/** The live log of one pipeline: bounded, paused by whoever reads, shown four times a second. */
export class Rows {
  /** What fits, the newest first. */
  shown = $state.raw<readonly Row[]>([]);
  isPaused = $state(false);
  /** How many rows are kept. */
  count = $state(0);
  /** How many rows came since it was paused. */
  passed = $state(0);
  #kept: Row[] = [];
  /** What was there when it was last shown: whoever pauses reads on in that. */
  #read: readonly Row[] = [];
  #n = 0;
  #passed = 0;
  #characters = 0;
  #isFresh = false;
  #skipped = { input: 0, transform: 0, output: 0 };
  #wanted: Wanted = "all";
  #contains = "";
  #fitting = new WeakMap<Row, boolean>();
  #timer = setInterval(() => this.#show(), 250);

  take = (told: Told): void => {
    const { payload, stage, ts, component } = told;
    const place = { n: ++this.#n, ts, stage, component };
    if ("error" in payload) {
      const { error } = payload;
      this.#keep({ ...place, total: told.count ?? 1, skipped: 0, messages: [], error });
      return;
    }
    this.#skipped[stage] += payload.batch.skipped_messages;
    const { messages, total } = payload.batch;
    if (!total) return; // it tells of messages that passed, and shows none
    this.#keep({ ...place, total, skipped: this.#skipped[stage], messages });
    this.#skipped[stage] = 0;
  };

  #keep(row: Row): void {
    this.#kept.push(row);
    this.#characters += size(row);
    while (this.#kept.length > KEPT || this.#characters > KEPT_CHARACTERS)
      this.#characters -= size(this.#kept.shift()!);
    if (this.isPaused) this.#passed += 1;
    this.#isFresh = true;
  }

  #show(): void {
    if (!this.#isFresh) return;
    if (this.isPaused) {
      this.passed = this.#passed;
      return;
    }
    this.#isFresh = false;
    this.#read = [...this.#kept];
    this.count = this.#read.length;
    this.#filter();
  }

  #filter(): void {
    this.shown = this.#read.filter((row) => this.#fits(row)).reverse();
  }

  /** Show only rows of a sort, and with a text in them, whatever its case. */
  want(wanted: Wanted, contains: string): void {
    this.#wanted = wanted;
    this.#contains = contains.toLowerCase();
    this.#fitting = new WeakMap();
    this.#filter();
  }

  #fits(row: Row): boolean {
    let fits = this.#fitting.get(row);
    if (fits === undefined) this.#fitting.set(row, (fits = this.#isWanted(row)));
    return fits;
  }

  #isWanted({ stage, error, messages }: Row): boolean {
    const sort = error === undefined ? stage : "error";
    if (this.#wanted !== "all" && this.#wanted !== sort) return false;
    const texts = error === undefined ? messages : [error];
    return !this.#contains || texts.some((text) => text.toLowerCase().includes(this.#contains));
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.passed = this.#passed = 0;
    this.#isFresh = true;
    this.#show();
  }

  /** When a failure was told of last, if it was. */
  told(error: string): number | undefined {
    return this.#kept.findLast((row) => row.error === error)?.ts;
  }

  /** The messages of the last batch that came in until then, without those that were cut. */
  before(ts: number): string[] {
    const batch = this.#kept.findLast(
      (row) => row.stage === "input" && row.error === undefined && row.ts <= ts,
    );
    return batch?.messages.filter((message) => !isCut(message)) ?? [];
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

const size = ({ messages, error }: Row): number =>
  messages.reduce((sum, message) => sum + message.length, error?.length ?? 0) + 100;
