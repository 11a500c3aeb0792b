import { concatMap, map, of } from 'rxjs';
import { type Message, textOf } from '../message.js';
import { namesOf } from '../tools/live-toolkit.js';
import { isArrayOf, isString } from '../shape.js';
import { type ToolSelection, unselected$ } from '../tools/select.js';
import { usesIn } from '../tools/suspend.js';
import type { CallStage } from './call-stage.js';
import { type CallState, hideTools, isOpen } from './call-state.js';

/** Picks the tools that the model is shown, where the call has a selection of them. */
export const selectTools: CallStage = ({ perform, hooks }) =>
  concatMap((state) => {
    const { plan } = state;
    const { toolSelection, toolChoice } = plan.options;
    if (toolSelection === undefined || !isOpen(state)) return of(state);
    return perform<readonly string[]>({
      kind: 'select',
      id: 'select',
      input: state.input,
      run: () =>
        unselected$(
          { ...toolSelection, pinned: pinnedBy(toolSelection, state) },
          plan.toolkit.current,
          textToSelectBy(state),
          toolChoice,
          (message) => hooks.report(0, { type: 'warning', message }),
        ),
      cut: () => of([]),
      form: { isWritten: isArrayOf(isString) },
    }).pipe(map((hidden) => hideTools(state, ...hidden)));
  });

/** What was asked, as it is meant. Where a call brings results and no words, what was asked last is what it goes on with. */
export const textToSelectBy = ({
  input,
  history,
  question,
}: Pick<CallState, 'input' | 'history' | 'question'>): string => {
  if (question !== undefined) return question;
  const said = input.map(textOf).join('\n');
  const asked = history.findLast(({ role }: Message) => role === 'user');
  return said === '' && asked !== undefined ? textOf(asked) : said;
};

/** A tool whose result was brought may have to be asked again, and what the call adds is meant for it. */
const pinnedBy = (
  { pinned = [] }: ToolSelection,
  { history, late, plan }: CallState,
): readonly string[] => {
  const uses = usesIn(history);
  const resumed = late.flatMap((message) =>
    message.role === 'tool' ? message.content.map((it) => uses.get(it.toolUseId)?.name) : [],
  );
  const added = namesOf(plan.options.addTools ?? []);
  return [...pinned, ...added, ...resumed.filter((name) => name !== undefined)];
};
