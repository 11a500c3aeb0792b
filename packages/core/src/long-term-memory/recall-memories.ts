import { concatMap, map, of } from 'rxjs';
import { textBlock, type UserMessage } from '../message.js';
import type { CallContext, CallStage } from '../pipeline/call-stage.js';
import {
  type CallState,
  charge,
  hideTools,
  isOpen,
  recall,
  recallBeforeInput,
} from '../pipeline/call-state.js';
import { consultInCall$ } from '../pipeline/consult-in-call.js';
import { textToSelectBy } from '../pipeline/select-tools.js';
import { section } from '../prompt/assemble.js';
import { findMemories$ } from './find-memories.js';
import type { RecalledMemory } from './long-term-memory.js';
import { isStatic, type MemorySettings } from './memory-settings.js';
import { memoryToolNames } from './memory-tools.js';
import { rankMemories } from './rank-memories.js';
import type { ScopeInCall } from './scope-in-call.js';
import type { ShownMemories } from './shown-memories.js';
import { recalledTitle, writtenMemories } from './written-memories.js';

/**
 * Makes the stage that recalls what may help with what was asked, and shows it. A call of which nobody says whose it is has no
 * memory, and no tools for one.
 */
export const recallStage = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  position: string,
): CallStage => {
  const recallMemories: CallStage = (context) =>
    concatMap((state) => {
      if (!isOpen(state)) return of(state);
      const { call, hooks, scope: own } = context;
      const scope = scopeIn({ call, hooks, values: own.values });
      if (scope === undefined) return of(hideTools(state, ...memoryToolNames));
      if (!isStatic(settings)) return of(state);
      return findMemories$(settings, context, {
        scope,
        position,
        known: [],
        iteration: 0,
        text: () => settings.query(state),
        aim: () => ({ goal: textToSelectBy(state) }),
        consult$: (asked) => consultInCall$(context, state, asked),
      }).pipe(
        map(({ memories, usage }) => {
          shown.add(call, memories);
          const told = withRecalled(settings, state, context, memories);
          return usage === undefined ? told : charge(told, rankMemories, usage);
        }),
      );
    });
  return recallMemories;
};

const withRecalled = (
  { placement }: MemorySettings,
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
  return placement === 'beforeInput' ? recallBeforeInput(state, message) : recall(state, message);
};
