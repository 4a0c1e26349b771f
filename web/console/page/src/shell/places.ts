import Boxes from "@lucide/svelte/icons/boxes";
import Plug from "@lucide/svelte/icons/plug";
import Triangle from "@lucide/svelte/icons/triangle-alert";
import Workflow from "@lucide/svelte/icons/workflow";

/** The screens that one goes to and fro between. */
export const PLACES = [
  { screen: "", name: "Pipelines", Icon: Workflow },
  { screen: "failures", name: "Failures", Icon: Triangle },
  { screen: "state", name: "State", Icon: Boxes },
  { screen: "connections", name: "Connections", Icon: Plug },
] as const;

/** Which of them a screen belongs to. */
export const placeOf = (screen: string): string =>
  screen === "p" ? "" : screen === "letters" ? "failures" : screen;
