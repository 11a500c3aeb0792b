import type { EventType } from '../events.js';

/** What a resumed call tells while its steps are answered by the journal: all that was told before is not told again. */
export interface Replaying {
  /** Tells an event, or keeps it back where it may have been told before. The last event of a call is told in any case. */
  readonly tell: (type: EventType, isEnd: boolean, now: () => void) => void;
  /** A step is answered by the journal: whatever stands before it has been told. */
  readonly passed: () => void;
  /** Tells something that is new, though nothing else is. */
  readonly aside: (tell: () => void) => void;
  /** A step is run: what is told from now on is new, and so may be what came behind the last step that was answered. */
  readonly end: () => void;
}

/** Makes what a call tells while it is resumed. `wasTold` knows of what came behind the last step that is written down. */
export const createReplaying = (wasTold: (type: EventType) => boolean): Replaying => {
  let held: { readonly type: EventType; readonly now: () => void }[] = [];
  let hasPassed = false;
  let isOver = false;
  let isAside = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    const rest = held;
    held = [];
    for (const { type, now } of rest) {
      // One of which no step is written down begins anew, for whoever listens now.
      if (!hasPassed || !wasTold(type)) now();
    }
  };
  return {
    tell: (type, isEnd, now) => {
      if (isEnd) end();
      if (isOver || isAside || type === 'stepReplayed') now();
      else held.push({ type, now });
    },
    passed: () => {
      hasPassed = true;
      if (!isOver) held = [];
    },
    aside: (tell) => {
      isAside = true;
      tell();
      isAside = false;
    },
    end,
  };
};
