import { concatMap, defaultIfEmpty, from, map, type Observable, toArray } from 'rxjs';
import type { Hooks } from '../hooks.js';
import type { Message, ToolMessage, ToolResultBlock, ToolUseBlock } from '../message.js';
import { rejectedResult } from '../rejected-result.js';
import { usesIn } from './suspend.js';

/** Leads results that were brought for suspended tools through the interceptors of `postActing`, as it would have been done at once. */
export const brought$ = (
  hooks: Hooks,
  history: readonly Message[],
  results: ToolMessage,
): Observable<ToolMessage> => {
  const uses = usesIn(history);
  return from(results.content).pipe(
    concatMap((result) => {
      const toolUse = uses.get(result.toolUseId);
      return toolUse === undefined ? [result] : after$(hooks, toolUse, result);
    }),
    toArray(),
    map((content) => ({ ...results, content })),
  );
};

const after$ = (
  hooks: Hooks,
  toolUse: ToolUseBlock,
  result: ToolResultBlock,
): Observable<ToolResultBlock> => {
  const after = { type: 'postActing', toolUse, result, ms: 0 } as const;
  return hooks.emit$(0, after).pipe(
    map((event) => ({ ...event.result, toolUseId: toolUse.id })),
    defaultIfEmpty(undefined),
    map((edited) => {
      if (edited !== undefined) return edited;
      const rejected = rejectedResult(toolUse.id);
      hooks.report(0, { ...after, result: rejected });
      return rejected;
    }),
  );
};
