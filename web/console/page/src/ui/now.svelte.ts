import { createSubscriber } from "svelte/reactivity";

const watched = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

/** The time now, once a second for whatever shows it. */
export function now(): number {
  watched();
  return Date.now();
}
