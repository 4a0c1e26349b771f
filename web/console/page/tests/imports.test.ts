import { describe, expect, test } from "vitest";

/** Each folder imports from those before it alone. */
const ORDER = [
  ["api"],
  ["ui"],
  ["live"],
  ["code", "draft", "graph"],
  ["dryrun", "review"],
  ["panel"],
  ["letters"],
  ["overview", "editor", "save", "revert", "connections", "failures", "state", "signin"],
  ["shell"],
  [""],
];
const COMPONENT = /\/[A-Z]\w*\.svelte$/;
const IMPORTED = /(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

const sources: Record<string, string> = import.meta.glob("../src/**/*.{ts,svelte}", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The folder of a path below `src`; the page's own files have none. */
const folder = (path: string) => path.split("/").slice(0, -1)[0] ?? "";
const level = (name: string) => ORDER.findIndex((each) => each.includes(name));

/** What the files import from other folders: from which file, from which folder. */
function* imports(): Generator<[string, string]> {
  for (const [file, text] of Object.entries(sources)) {
    const path = file.slice("../src/".length);
    for (const [, wanted] of text.matchAll(IMPORTED)) {
      const target = new URL(wanted!, `file:///${path}`).pathname.slice(1);
      if (folder(target) !== folder(path)) yield [path, folder(target)];
    }
  }
}

describe("the folders of the page", () => {
  test("each has a place", () => {
    const all = Object.keys(sources).map((file) => folder(file.slice("../src/".length)));

    expect([...new Set(all)].sort()).toEqual(ORDER.flat().sort());
  });

  test("import one way", () => {
    const found = [...imports()];

    expect(found.length).toBeGreaterThan(100);
    expect(found.filter(([file, from]) => level(from) >= level(folder(file)))).toEqual([]);
  });

  test("what is no component imports none", () => {
    const logic = Object.keys(sources).filter((file) => file.endsWith(".ts"));
    const wrong = logic.filter((file) =>
      [...sources[file]!.matchAll(IMPORTED)].some(([, path]) => COMPONENT.test(path!)),
    );

    expect(wrong).toEqual(["../src/main.ts"]);
  });
});
