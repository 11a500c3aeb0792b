import { concatMap } from 'rxjs';
import {
  type Call,
  charge,
  hideTools,
  isOpen,
  questionOf,
  recall,
  recallBeforeInput,
} from '../call/call.js';
import { consultInCall$ } from '../consult.js';
import type { Layer, LayerContext } from '../layer.js';
import { textBlock, type UserMessage } from '../message.js';
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
 * Makes the layer that recalls what may help with what was asked, and shows it, once other layers have found out what is meant. A call of which nobody says whose it is
 * has no memory, and no tools for one.
 */
export const recallMemories = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  position: string,
): Layer => ({
  name: recallLayer,
  priority: 85,
  call: (context) => (next) => (call) => {
    if (!isOpen(call)) return next(call);
    const scope = scopeIn(context);
    if (scope === undefined) return next(hideTools(call, ...memoryToolNames));
    if (!isStatic(settings)) return next(call);
    return findMemories$(settings, context, {
      scope,
      position,
      known: [],
      iteration: 0,
      text: () => settings.query(call),
      aim: () => ({ goal: questionOf(call) }),
      consult$: (asked) => consultInCall$(context, call, asked),
    }).pipe(
      concatMap(({ memories, usage }) => {
        shown.add(context.call, memories);
        const told = withRecalled(settings, call, context, memories);
        return next(usage === undefined ? told : charge(told, rankMemories, usage));
      }),
    );
  },
});

/** The name of the layer, by which the memories of an agent are counted. */
export const recallLayer = 'recallMemories';

const withRecalled = (
  { placement }: MemorySettings,
  call: Call,
  { call: { callId } }: Pick<LayerContext, 'call'>,
  memories: readonly RecalledMemory[],
): Call => {
  if (memories.length === 0) return call;
  const text = section(recalledTitle, writtenMemories(memories)) ?? '';
  const message: UserMessage = {
    id: `${callId}/recalled/${call.recalled.length}`,
    role: 'user',
    content: [textBlock(text)],
  };
  return placement === 'beforeInput' ? recallBeforeInput(call, message) : recall(call, message);
};
