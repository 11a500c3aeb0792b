import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  map,
  type Observable,
  of,
  takeUntil,
} from 'rxjs';
import { messageOf } from '../errors.js';
import { textBlock, type UserMessage } from '../message.js';
import type { CallContext, CallStage } from '../pipeline/call-stage.js';
import { type CallState, charge, hideTools, isOpen, recall } from '../pipeline/call-state.js';
import { consultInCall$ } from '../pipeline/consult-in-call.js';
import { textToSelectBy } from '../pipeline/select-tools.js';
import { section } from '../prompt/assemble.js';
import { isStatic, type MemorySettings } from './memory-settings.js';
import type { MemoryScope, RecalledMemory } from './long-term-memory.js';
import { recalled$ } from './memory-access.js';
import { memoryToolNames } from './memory-tools.js';
import { rankedBy, rankingRequest, rankMemories as phase } from './rank-memories.js';
import type { ScopeInCall } from './scope-in-call.js';
import { recalledTitle, writtenMemories } from './written-memories.js';

/**
 * Makes the stage that recalls what may help with what was asked, and shows it before the history. A call of which nobody says whose it is has no
 * memory, and no tools for one.
 */
export const recallStage = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  position: string,
): CallStage => {
  const recallMemories: CallStage = (context) =>
    concatMap((state) => {
      if (!isOpen(state)) return of(state);
      const scope = scopeIn(context);
      if (scope === undefined) return of(hideTools(state, ...memoryToolNames));
      if (!isStatic(settings)) return of(state);
      const place = { context, state, scope, position };
      return found$(settings, place).pipe(concatMap((found) => chosen$(settings, place, found)));
    });
  return recallMemories;
};

interface Place {
  readonly context: CallContext;
  readonly state: CallState;
  readonly scope: MemoryScope;
  readonly position: string;
}

const found$ = (
  { memory, timeoutMs, top, candidates, rank, query }: MemorySettings,
  { context, state, scope, position }: Place,
): Observable<readonly RecalledMemory[]> => {
  const { step$, hooks, scheduler, interruption } = context;
  const report = (message: string): void => hooks.report(0, { type: 'warning', message });
  return step$(position, () =>
    defer(() => {
      const text = query(state);
      const limit = rank ? Math.max(top, candidates) : top;
      return text.trim() === ''
        ? of([])
        : recalled$({ memory, scope, scheduler, timeoutMs }, { text, limit, report });
    }).pipe(
      catchError((error: unknown) => {
        report(`Nothing could be recalled, so the call goes on without: ${messageOf(error)}`);
        return of([]);
      }),
    ),
  ).pipe(takeUntil(interruption.cut$), defaultIfEmpty([]));
};

const chosen$ = (
  { rank, top }: MemorySettings,
  { context, state, position }: Place,
  found: readonly RecalledMemory[],
): Observable<CallState> => {
  // There is nothing to choose from where all can be shown.
  if (!rank || found.length <= top) return of(shown(state, context, found.slice(0, top)));
  const { call, hooks } = context;
  const place = `${position}/rank`;
  const aim = { goal: textToSelectBy(state) };
  const request = rankingRequest(`${call.callId}/${place}`, found, aim, top);
  return consultInCall$(context, state, { phase, position: place, request }).pipe(
    map((consulted) => {
      const { memories, warning } = rankedBy(consulted, found, top);
      if (warning !== undefined) hooks.report(0, { type: 'warning', message: warning });
      return charge(shown(state, context, memories), phase, consulted.usage);
    }),
  );
};

const shown = (
  state: CallState,
  { call }: CallContext,
  memories: readonly RecalledMemory[],
): CallState => {
  if (memories.length === 0) return state;
  const text = section(recalledTitle, writtenMemories(memories)) ?? '';
  const message: UserMessage = {
    id: `${call.callId}/recalled/${state.recalled.length}`,
    role: 'user',
    content: [textBlock(text)],
  };
  return recall(state, message);
};
