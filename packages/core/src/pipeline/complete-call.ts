import { map } from 'rxjs';
import { discard } from '../discard.js';
import { frozen } from '../frozen.js';
import { noteWords } from '../words-before.js';
import { noMemory } from '../memory.js';
import type { CallStage } from './call-stage.js';
import { replyOf, runOf } from './review-reply.js';

/** Ends the call: gives its place in the session on, and tells the last event, `postCall`. */
export const completeCall: CallStage = ({ call, hooks, settle }) =>
  map((state) => {
    const run = runOf(state, 'completeCall');
    const reply = frozen(replyOf(state, 'completeCall'));
    noteWords(reply, run, call);
    state.plan.session?.record.end(call.callId, reply, state.memory !== noMemory);
    settle(reply);
    if (reply.id !== run.answer.id) discard({ hooks }, run.iteration, run.answer, 'stopped');
    hooks.report(run.iteration, { type: 'postCall', reply });
    return { ...state, reply };
  });
