import type { Adapter, Conversation } from '../adapter.js';
import { isFlag, isNumber, isShape, isText } from '../guard.js';
import { expected } from './checked-call.js';
import { settled } from './held-memory.js';
import type { Job } from './job.js';

/** Conversations that are held. */
export interface IdleOptions {
  readonly script: string;
  readonly sessions: number;
  /** Before anything is measured. They are held too. */
  readonly warmUp: number;
}

/** What they hold. */
export interface Idle {
  /** False where the adapter knows no conversations: nothing has been measured then. */
  readonly isHeld: boolean;
  /** Bytes of the heap, for each. */
  readonly heapBytes: number;
  /** Milliseconds that a call took, with some side by side. */
  readonly callMs: number;
}

/** Calls that run side by side while the conversations are made. */
const sideBySide = 16;

/** Measures what conversations hold that have had one call each, and wait for the next. */
export const idleJob: Job<IdleOptions, Idle> = {
  name: 'idle',
  isOptions: isShape({ script: isText, sessions: isNumber, warmUp: isNumber }),
  isResult: isShape({ isHeld: isFlag, heapBytes: isNumber, callMs: isNumber }),
  run: async (open, { script, sessions, warmUp }) => {
    const adapter = await open();
    if (adapter.session === undefined) return { isHeld: false, heapBytes: 0, callMs: 0 };
    const held: Conversation[] = [];
    await converse(adapter, script, warmUp, held);
    await settled();
    const before = process.memoryUsage().heapUsed;
    const startedAt = performance.now();
    await converse(adapter, script, sessions, held);
    const callMs = (performance.now() - startedAt) / sessions;
    await settled();
    const { heapUsed } = process.memoryUsage();
    // Looked at behind the measurement, so that nothing has been collected before it.
    if (held.length !== sessions + warmUp) throw new Error('Conversations have been lost.');
    return { isHeld: true, heapBytes: (heapUsed - before) / sessions, callMs };
  },
};

/** Makes so many conversations, has one call in each, and puts them with those that are held. */
const converse = async (
  adapter: Adapter,
  script: string,
  count: number,
  held: Conversation[],
): Promise<void> => {
  const { text } = expected(script);
  const end = held.length + count;
  const one = async (): Promise<void> => {
    while (held.length < end) {
      const session = adapter.session?.(`session-${held.length}`);
      if (session === undefined) return;
      held.push(session);
      if ((await session.call(script)) !== text) throw new Error('The answer is another one.');
    }
  };
  await Promise.all(Array.from({ length: sideBySide }, one));
};
