import { catchError, concatMap, defer, map, type Observable, of, tap } from 'rxjs';
import { isRecord } from '../json.js';
import { hasFields, isArrayOf, isNumeric, isOptional, isString } from '../shape.js';
import type { Consultation, Consulted } from '../consult.js';
import type { Context } from '../context.js';
import { messageOf } from '../errors.js';
import type { Usage } from '../usage.js';
import type { MemoryEntry, MemoryScope, RecalledMemory } from './long-term-memory.js';
import { recalled$ } from './memory-access.js';
import type { MemorySettings } from './memory-settings.js';
import { type Aim, rankedBy, rankingRequest, rankMemories as phase } from './rank-memories.js';

/** What is looked for in a call. */
export interface Search {
  readonly scope: MemoryScope;
  /** Its place in the call. */
  readonly position: string;
  readonly iteration: number;
  /** The words that are looked for; nothing, where they are blank. */
  readonly text: () => string;
  /** What the model is shown already: it is not found again. */
  readonly known: readonly MemoryEntry[];
  /** What the memories are to help with. */
  readonly aim: () => Aim;
  /** Asks the model of the call beside its loop. */
  readonly consult$: (consultation: Consultation) => Observable<Consulted>;
}

/** What was found. */
export interface Found {
  readonly memories: readonly RecalledMemory[];
  /** What it has cost to choose, where the model was asked. */
  readonly usage?: Usage;
}

type Needs = Pick<Context, 'call' | 'perform' | 'hooks' | 'scheduler'>;

/**
 * Looks for memories, and has the model choose from them where it is to. Emits once what is to be shown, and completes; what fails is a `warning`. An
 * interrupt ends the wait.
 */
export const findMemories$ = (
  settings: MemorySettings,
  context: Needs,
  search: Search,
): Observable<Found> => {
  const { rank, top, candidates, memory, timeoutMs } = settings;
  const { perform, hooks, scheduler } = context;
  const { scope, position, iteration, known } = search;
  const report = (message: string): void => hooks.report(iteration, { type: 'warning', message });
  return perform<readonly RecalledMemory[]>({
    kind: 'memory',
    id: position,
    input: known,
    run: () =>
      defer(() => {
        const text = search.text();
        const limit = rank ? Math.max(top, candidates) : top;
        return text.trim() === ''
          ? of([])
          : recalled$(
              { memory, scope, scheduler, timeoutMs },
              { text, limit: limit + known.length, report },
            ).pipe(map((found) => without(known, found).slice(0, limit)));
      }).pipe(
        catchError((error: unknown) => {
          report(`Nothing could be recalled, so the call goes on without: ${messageOf(error)}`);
          return of([]);
        }),
      ),
    cut: () => of([]),
    form: { isWritten: isArrayOf(isRecalled) },
  }).pipe(
    concatMap((found) =>
      // There is nothing to choose from where all can be shown.
      rank && found.length > top
        ? chosen$(settings, context, search, found)
        : of({ memories: found.slice(0, top) }),
    ),
    tap(({ memories }) => {
      if (memories.length > 0) hooks.report(iteration, { type: 'recalled', memories });
    }),
  );
};

const isRecalled = (written: unknown): boolean =>
  hasFields(written, {
    id: isString,
    text: isString,
    kind: isString,
    scope: isRecord,
    createdAt: isNumeric,
    metadata: isRecord,
    score: isOptional(isNumeric),
  });

const without = (
  known: readonly MemoryEntry[],
  found: readonly RecalledMemory[],
): readonly RecalledMemory[] =>
  found.filter(
    ({ id, scope }) => !known.some((it) => it.id === id && it.scope.sessionId === scope.sessionId),
  );

const chosen$ = (
  { top }: MemorySettings,
  { call, hooks }: Needs,
  { position: at, iteration, aim, consult$ }: Search,
  found: readonly RecalledMemory[],
): Observable<Found> => {
  const position = `${at}/rank`;
  const request = rankingRequest(`${call.callId}/${position}`, found, aim(), top);
  return consult$({ phase, position, request }).pipe(
    map((consulted) => {
      const { memories, warning } = rankedBy(consulted, found, top);
      if (warning !== undefined) hooks.report(iteration, { type: 'warning', message: warning });
      return { memories, usage: consulted.usage };
    }),
  );
};
