import { concat, of } from 'rxjs';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { remember$ } from '../remember.js';

/** Writes what memory does not have yet, whole: an assistant message goes together with its tools' results. */
export const storeMemory = ({ memory }: Pick<Context, 'memory'>): Phase =>
  phase((run) => {
    const { messages, stored } = run;
    if (stored === messages.length) return of(run);
    return concat(
      remember$(memory, messages.slice(stored)),
      of({ ...run, stored: messages.length }),
    );
  });
