import { map } from 'rxjs';
import { discard } from '../discard.js';
import { frozen } from '../frozen.js';
import type { CallStage } from './call-stage.js';
import { replyOf, runOf } from './review-reply.js';

/** Ends the call: gives its place in the session on, and tells the last event, `postCall`. */
export const completeCall: CallStage = ({ hooks, settle }) =>
  map((state) => {
    const run = runOf(state, 'completeCall');
    const reply = frozen(replyOf(state, 'completeCall'));
    settle(reply);
    if (reply.id !== run.answer.id) discard({ hooks }, run.iteration, run.answer, 'stopped');
    hooks.report(run.iteration, { type: 'postCall', reply });
    return { ...state, reply };
  });
