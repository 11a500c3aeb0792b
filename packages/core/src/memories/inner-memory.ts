import { defer, EMPTY, map, type Observable } from 'rxjs';
import { misuse } from '../errors.js';
import type { Layer } from '../layer.js';
import { kept$, type Memory, type MemoryFactory, noMemory } from '../memory.js';
import type { Message } from '../message.js';
import { withResults } from '../tools/suspend.js';

/** Refuses what makes no memories. */
export const checkInner = (owner: string, inner: unknown): void => {
  if (typeof inner === 'function') return;
  throw misuse(`${owner} needs a factory of memories, such as inProcessMemory() makes.`);
};

export const settled$ = (memory: Memory): Observable<readonly Message[]> =>
  defer(() => memory.load$()).pipe(map(withResults));

export const shownBy =
  (
    inner: MemoryFactory,
    show: (
      sessionId: string,
      messages$: Observable<readonly Message[]>,
    ) => ReturnType<Memory['load$']>,
    /** Hears when all that there was is to be replaced. */
    forget: (sessionId: string) => void = () => undefined,
  ): MemoryFactory =>
  (sessionId) => {
    const memory = inner(sessionId);
    return {
      load$: () => show(sessionId, settled$(memory)),
      append$: (...given) => defer(() => memory.append$(...given)),
      ...wholeOf(memory, () => forget(sessionId)),
    };
  };

/** What one that shows another memory passes on to it: all that it keeps can be read, and replaced where it can. */
export const wholeOf = (
  memory: Memory,
  forget: () => void = () => undefined,
): Pick<Memory, 'all$' | 'replace$'> => ({
  all$: () => kept$(memory),
  ...(memory.replace$ !== undefined && {
    replace$: (messages) =>
      defer(() => {
        forget();
        return memory.replace$?.(messages) ?? EMPTY;
      }),
  }),
});

/** Has the calls of an agent remember through other memories, made of those of their sessions. */
export const throughMemory = (
  name: string,
  wrap: (inner: MemoryFactory) => MemoryFactory,
): Layer => ({
  name,
  priority: 54,
  call:
    ({ call: { sessionId = '' } }) =>
    (next) =>
    (call) =>
      next(
        call.memory === noMemory ? call : { ...call, memory: wrap(() => call.memory)(sessionId) },
      ),
});
