import { concatMap, of } from 'rxjs';
import { type Call, hideTools, isOpen, questionOf } from '../call/call.js';
import type { Layer } from '../layer.js';
import { isArrayOf, isString } from '../shape.js';
import { type ToolSelection, unselected$ } from './select.js';
import { usesIn } from './suspend.js';

/** Picks the tools that the model is shown if the call has a selection of them. */
export const selectTools: Layer = {
  name: 'selectTools',
  priority: 90,
  call:
    ({ perform, hooks }) =>
    (next) =>
    (call) => {
      const { toolSelection, toolChoice } = call.options;
      if (toolSelection === undefined || !isOpen(call)) return next(call);
      return perform<readonly string[]>({
        kind: 'select',
        id: 'select',
        input: call.input,
        run: () =>
          unselected$(
            { ...toolSelection, pinned: pinnedBy(toolSelection, call) },
            call.toolkit.current,
            questionOf(call),
            toolChoice,
            (message) => hooks.report(0, { type: 'warning', message }),
          ),
        cut: () => of([]),
        form: { isWritten: isArrayOf(isString) },
      }).pipe(concatMap((hidden) => next(hideTools(call, ...hidden))));
    },
};

/** A tool whose result was brought may have to be asked again. */
const pinnedBy = (
  { pinned = [] }: ToolSelection,
  { history, late, pinned: always }: Call,
): readonly string[] => {
  const uses = usesIn(history);
  const resumed = late.flatMap((message) =>
    message.role === 'tool' ? message.content.map((it) => uses.get(it.toolUseId)?.name) : [],
  );
  return [...pinned, ...always, ...resumed.filter((name) => name !== undefined)];
};
