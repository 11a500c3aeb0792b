import { concat, concatMap, of } from 'rxjs';
import { remember$ } from '../remember.js';
import { unstored } from '../reviewed.js';
import type { CallStage } from './call-stage.js';
import { replyOf, runOf } from './review-reply.js';

/** Writes what memory lacks: the messages since it was last written, and the final one. */
export const saveHistory: CallStage = ({ hooks }) =>
  concatMap((state) => {
    const run = runOf(state, 'saveHistory');
    const reply = replyOf(state, 'saveHistory');
    const { memory } = state;
    return concat(remember$({ memory, hooks }, run, unstored(run, reply)), of(state));
  });
