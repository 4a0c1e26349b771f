import { api, type Bucket, type Change, type Pipeline, type Settings } from "../api/client";
import { Connection } from "./connection.svelte";
import { Gauges } from "./gauges.svelte";
import { DeadLetters } from "./letters.svelte";
import { Seldom } from "./seldom";

const CHANGED_MS = 2000;
/** What is not in a pulse is asked for while it matters: seldom where that is a megabyte. */
const OFTEN_MS = 5000;
const SELDOM_MS = 30_000;
const MANY = 100;

type Heard = (change: Change) => unknown;

/** What the server runs, as this page knows it: asked for once, and again when it has changed. */
class Server {
  pipelines = $state.raw<Pipeline[]>([]);
  settings = $state.raw<Settings>();
  buckets = $state.raw<Bucket[]>([]);
  loaded = $state(false);
  /** Why nothing could be asked for, when the page was opened. */
  trouble = $state("");
  readonly gauges = new Gauges();
  readonly letters = new DeadLetters();
  readonly connection = new Connection({
    opened: () => void this.refresh(),
    pulse: (pulse) => {
      const missing = this.gauges.take(pulse);
      if (missing === "minute") void this.#recall();
      if (missing === "failures") this.#untold.soon();
      this.#look(pulse.pipelines);
      if (pulse.gone) this.#again.soon();
      const isQueueing = Object.values(pulse.pipelines).some((each) => each.in_flight > 1);
      if (isQueueing || this.#isDegraded) this.#closely.soon();
    },
    failed: (told, why) => this.gauges.of(told.pipeline_id).fail(why, told.ts),
    changed: (change) => {
      this.#again.soon();
      for (const heard of this.#heard) heard(change);
    },
    putDown: () => this.letters.changed(),
  });
  readonly feed = this.connection.feed;
  #heard = new Set<Heard>();
  #again = new Seldom(
    () => this.refresh(),
    () => CHANGED_MS,
  );
  #closely = new Seldom(
    () => this.refresh(),
    () => (this.pipelines.length > MANY ? SELDOM_MS : OFTEN_MS),
  );
  #untold = new Seldom(
    async () => {
      // Without an answer the next pulse asks again.
      const told = await api.failures().catch(() => ({ failures: [] }));
      this.gauges.recall(told.failures);
    },
    () => CHANGED_MS,
  );
  #isDegraded = $derived(this.pipelines.some(({ health }) => health === "degraded"));
  #byId = $derived(new Map(this.pipelines.map((each) => [each.id, each])));

  get connected(): boolean {
    return this.connection.isOpen;
  }

  start(): void {
    this.connection.start();
  }

  stop(): void {
    this.connection.stop();
    this.loaded = false;
  }

  /** Ask for what runs. */
  async refresh(): Promise<void> {
    try {
      const [pipelines, settings, buckets] = await Promise.all([
        api.pipelines(),
        api.settings(),
        api.buckets(),
      ]);
      this.gauges.keep(pipelines.map(({ id }) => id));
      this.pipelines = same(this.pipelines, pipelines);
      this.settings = settings;
      this.buckets = buckets;
      this.loaded = true;
      this.trouble = "";
    } catch (cause) {
      this.trouble = cause instanceof Error ? cause.message : String(cause);
    }
  }

  /** Be told of what others change, until the function that is returned is called. */
  changes(heard: Heard): () => void {
    this.#heard.add(heard);
    return () => this.#heard.delete(heard);
  }

  get(id: string): Pipeline | undefined {
    return this.#byId.get(id);
  }

  /** What was before: counts of the last minute, and failures. */
  async #recall(): Promise<void> {
    try {
      const [history, { failures }] = await Promise.all([api.recent(), api.failures()]);
      this.gauges.fill(history);
      this.gauges.recall(failures);
    } catch {
      // Without it a minute is a gap: what is counted from now shows.
    }
  }

  /** A pulse tells that something is not as it was asked for: why is to be asked for. */
  #look(pulses: Record<string, { status: string; health?: string }>): void {
    const isOther = ([id, now]: [string, { status: string; health?: string }]) => {
      const known = this.get(id);
      return !known || known.status !== now.status || (now.health && known.health !== now.health);
    };
    if (this.loaded && Object.entries(pulses).some(isOther)) this.#again.soon();
  }
}

/** Pipelines that are as they were stay the same objects, and so are not drawn again. */
function same(before: Pipeline[], now: Pipeline[]): Pipeline[] {
  const known = new Map(before.map((each) => [each.id, { each, text: JSON.stringify(each) }]));
  const next = now.map((each) => {
    const was = known.get(each.id);
    return was?.text === JSON.stringify(each) ? was.each : each;
  });
  const isSame = next.length === before.length && next.every((each, at) => each === before[at]);
  return isSame ? before : next;
}

export const server = new Server();
