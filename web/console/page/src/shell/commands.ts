/** Something that the palette offers. */
export interface Command {
  key: string;
  name: string;
  hint: string;
  run: () => void;
}

const MOST = 40;

/** The commands that fit what is typed, those that fit best first. */
export function matching(commands: readonly Command[], typed: string): Command[] {
  const wanted = typed.trim().toLowerCase();
  return commands
    .map((command) => ({ command, rank: rank(command.name.toLowerCase(), wanted) }))
    .filter(({ rank }) => rank < Infinity)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MOST)
    .map(({ command }) => command);
}

/** How well a name fits: whole, its beginning, the beginning of a word, a part, its letters in order. */
function rank(name: string, wanted: string): number {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  const at = name.indexOf(wanted);
  if (at > 0) return /[^\p{L}\p{N}]/u.test(name[at - 1]!) ? 2 : 3;
  let from = 0;
  for (const letter of wanted) {
    from = name.indexOf(letter, from) + 1;
    if (!from) return Infinity;
  }
  return 4;
}

/** What can be done with pipelines and on the server; what changes things only for who may. */
export function commands(
  ids: readonly string[],
  mayChange: boolean,
  go: (...parts: string[]) => void,
  turn: () => void,
): Command[] {
  const goes =
    (...parts: string[]) =>
    () =>
      go(...parts);
  const screens: [string, string, string][] = [
    ["Pipelines", "", "overview"],
    ["Failures", "failures", "of all pipelines"],
    ["Dead letters", "letters", "what could not be done"],
    ["State", "state", "buckets"],
    ["Connections", "connections", ""],
    ["Wall view", "wall", "for a screen that hangs somewhere"],
    ...(mayChange
      ? ([
          ["New pipeline", "new", ""],
          ["Save", "save", "write the config file"],
          ["Revert", "revert", "run what the file says"],
        ] as [string, string, string][])
      : []),
  ];
  return [
    ...ids.map((id) => ({ key: `p ${id}`, name: id, hint: "pipeline", run: goes("p", id) })),
    ...screens.map(([name, screen, hint]) => ({
      key: `s ${screen}`,
      name,
      hint,
      run: screen ? goes(screen) : goes(),
    })),
    { key: "theme", name: "Light or dark", hint: "colours", run: turn },
    ...(mayChange
      ? ids.flatMap((id) => [
          { key: `e ${id}`, name: `Edit ${id}`, hint: "editor", run: goes("edit", id) },
          { key: `d ${id}`, name: `Dry run ${id}`, hint: "dry run", run: goes("dryrun", id) },
        ])
      : []),
  ];
}
