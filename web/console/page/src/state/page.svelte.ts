import { api } from "../api/client";
import { Asked } from "../ui/asked.svelte";
import { JsonText } from "../ui/jsontext";

/** A key of a bucket: what is remembered under it, as JSON text, and when something was last written. */
export interface Entry {
  key: string;
  values: string;
  updated: string;
}

/** One page of a bucket, the entries that were written last first. */
export class Page {
  #asked = new Asked<{ entries: readonly Entry[]; isTruncated: boolean }>();
  prefix = $state("");
  /** Behind which entry each page up to this one begins. */
  #after = $state.raw<readonly string[]>([""]);

  constructor(readonly bucket: string) {}

  get entries(): readonly Entry[] | undefined {
    return this.#asked.value?.entries;
  }

  /** Whether there are more behind these. */
  get isTruncated(): boolean {
    return this.#asked.value?.isTruncated ?? false;
  }

  /** Why the page could not be had. */
  get fault(): string {
    return this.#asked.fault;
  }

  get number(): number {
    return this.#after.length;
  }

  find(prefix: string): void {
    this.prefix = prefix;
    this.#after = [""];
    void this.load();
  }

  next(): void {
    const last = this.entries?.at(-1);
    if (last) this.#turnTo([...this.#after, `${last.updated},${last.key}`]);
  }

  previous(): void {
    this.#turnTo(this.#after.slice(0, -1));
  }

  #turnTo(after: readonly string[]): void {
    this.#after = after;
    void this.load();
  }

  async load(): Promise<void> {
    const [after, prefix] = [this.#after.at(-1)!, this.prefix];
    await this.#asked.ask(async () => read(await api.bucketText(this.bucket, prefix, after)));
  }
}

function read(text: string): { entries: readonly Entry[]; isTruncated: boolean } {
  const told = new Map(new JsonText(text).entries);
  return {
    entries: told.get("entries")!.items.map(entry),
    isTruncated: told.get("truncated")!.value(),
  };
}

function entry(text: JsonText): Entry {
  const of = new Map(text.entries);
  return {
    key: of.get("key")!.value(),
    values: of.get("values")!.text,
    updated: of.get("updated_at")!.value(),
  };
}
