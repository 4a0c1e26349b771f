import type { Change, Pulse, UiEvent } from "../api/client";
import type { PutDown } from "../api/letters";

export type Told = UiEvent;
type Listener = (told: Told) => void;

/** What the stream tells, and how it is. */
export interface Hearing {
  pulse(pulse: Pulse): void;
  changed(change: Change): void;
  putDown(letters: PutDown): void;
  failed(told: Told, why: string): void;
  opened(): void;
  lost(): void;
}

/**
 * The one event stream of the page: counts of all pipelines once a second, failures, dead letters, what others
 * change, and the batches of those pipelines that somebody looks at.
 */
export class Feed {
  #source: EventSource | undefined;
  #address = "";
  #listeners = new Map<string, Set<Listener>>();
  #renewal: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly hearing: Hearing) {}

  get isOpen(): boolean {
    return this.#source !== undefined;
  }

  /** Open the stream, or another one if other pipelines are looked at by now. */
  open(): void {
    const address = `./events?named=pulse,changed,dead-letters${[...this.#listeners.keys()]
      .map((id) => `&pipeline=${encodeURIComponent(id)}`)
      .join("")}`;
    if (this.#source && address === this.#address) return;
    this.close();
    const source = new EventSource(address);
    this.#source = source;
    this.#address = address;
    source.onopen = () => this.hearing.opened();
    source.onerror = () => {
      // It would go on trying without a word of why: who asks next finds out.
      if (source !== this.#source) return;
      this.close();
      this.hearing.lost();
    };
    source.onmessage = ({ data }) => this.#tell(JSON.parse(data) as Told);
    source.addEventListener("pulse", ({ data }) => this.hearing.pulse(JSON.parse(data) as Pulse));
    source.addEventListener("changed", ({ data }) =>
      this.hearing.changed(JSON.parse(data) as Change),
    );
    source.addEventListener("dead-letters", ({ data }) =>
      this.hearing.putDown(JSON.parse(data) as PutDown),
    );
  }

  close(): void {
    this.#source?.close();
    this.#source = undefined;
  }

  /** Be told of the batches and failures of a pipeline, until the function that is returned is called. */
  of(pipeline: string, listener: Listener): () => void {
    const some = this.#listeners.get(pipeline) ?? new Set();
    this.#listeners.set(pipeline, some.add(listener));
    this.#renew();
    return () => {
      some.delete(listener);
      if (!some.size) this.#listeners.delete(pipeline);
      this.#renew();
    };
  }

  /** One panel closes and the next one opens: that is one other stream, not two. */
  #renew(): void {
    clearTimeout(this.#renewal);
    this.#renewal = setTimeout(() => this.isOpen && this.open());
  }

  #tell(told: Told): void {
    if ("error" in told.payload) this.hearing.failed(told, told.payload.error);
    for (const listener of this.#listeners.get(told.pipeline_id) ?? []) listener(told);
  }
}
