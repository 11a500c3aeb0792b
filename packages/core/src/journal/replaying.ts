import type { EventType } from '../events.js';

/** What a resumed call tells while its steps are answered by the journal: all that was told before is not told again. */
export interface Replaying {
  /** Takes an event that has been told before, or tells that it must be told now. */
  holds(type: EventType, tell: () => void): boolean;
  /** A step is answered by the journal: whatever stands before it has been told. */
  passed(): void;
  /** Tells something that is new, though nothing else is. */
  aside(tell: () => void): void;
  /** A step is run: what is told from now on is new, and so may be what came behind the last step. */
  end(): void;
}

/** Makes what a family of calls tells while it is resumed. */
export const createReplaying = (): Replaying => {
  let held: (() => void)[] = [];
  let isOver = false;
  let isAside = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    const rest = held;
    held = [];
    for (const tell of rest) tell();
  };
  return {
    holds: (type, tell) => {
      if (type === 'postCall' || type === 'error') end();
      if (isOver || isAside || type === 'stepReplayed') return false;
      held.push(tell);
      return true;
    },
    passed: () => {
      held = [];
    },
    aside: (tell) => {
      isAside = true;
      tell();
      isAside = false;
    },
    end,
  };
};
