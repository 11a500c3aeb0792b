import { fromEvent } from 'rxjs';
import { errand$ } from './errand.js';
import { isErrand, type Said } from './said.js';

// Does the errand that it is sent, tells what happens, and ends by itself when nothing is left over.

const tell = (said: Said): void => {
  if (process.connected) process.send?.(said);
};

/** Any message behind the first one. */
const leave$ = fromEvent(process, 'message');

process.once('message', (message) => {
  if (!isErrand(message)) throw new Error('This is no errand.');
  errand$(message, tell, leave$).subscribe({
    error: (error: unknown) => {
      throw error;
    },
    // Behind all that was told before: a channel that is closed loses what it has not sent.
    complete: () => process.send?.({}, undefined, undefined, () => process.disconnect()),
  });
});
tell({ type: 'point', point: 'ready' });
