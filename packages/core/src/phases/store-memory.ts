import { concat, defer, ignoreElements, of } from 'rxjs';
import { failAs } from '../fail-as.js';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { assertPaired } from '../run.js';

/** Writes what memory does not have yet, whole: an assistant message goes together with its tools' results. */
export const storeMemory = ({ memory }: Pick<Context, 'memory'>): Phase =>
  phase((run) => {
    const { messages, stored } = run;
    if (stored === messages.length) return of(run);
    return concat(
      defer(() => {
        const added = messages.slice(stored);
        assertPaired(added);
        return memory.append$(added);
      }).pipe(failAs('memory', 'The memory could not be written'), ignoreElements()),
      of({ ...run, stored: messages.length }),
    );
  });
