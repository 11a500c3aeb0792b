import { concat, of } from 'rxjs';
import { noMemory } from '../memory.js';
import { type Phase, phase, transition } from '../phase.js';
import { remember$, type Remembering } from '../remember.js';
import { assertPaired, type OpenRun } from '../run.js';

/** Writes what memory does not have yet, whole: an assistant message goes together with its tools' results. */
export const storeMemory = (context: Remembering): Phase =>
  context.memory === noMemory
    ? transition((run) => {
        assertPaired(unstored(run));
        return stored(run);
      })
    : phase((run) => {
        const messages = unstored(run);
        return messages.length + run.late.length === 0
          ? of(run)
          : concat(remember$(context, run, messages), of(stored(run)));
      });

const unstored = ({ messages, stored }: OpenRun): OpenRun['messages'] => messages.slice(stored);

const stored = (run: OpenRun): OpenRun => ({
  ...run,
  stored: run.messages.length,
  late: [],
});
