import { concatMap, map } from 'rxjs';
import { MillraceError } from '../errors.js';
import { reviewed$ } from '../reviewed.js';
import type { Reply } from '../reply.js';
import type { EndedRun } from '../run.js';
import type { CallStage } from './call-stage.js';
import type { CallState } from './call-state.js';

/** Makes the reply of the run, on which the interceptors of `postCall` have the last word. */
export const reviewReply: CallStage = (context) =>
  concatMap((state) =>
    context
      .perform({
        kind: 'reply',
        id: 'reply',
        input: state.run?.answer,
        run: () => reviewed$(context, state, runOf(state, 'reviewReply')),
      })
      .pipe(map((reply) => ({ ...state, reply }))),
  );

/** The run that the loop has ended. */
export const runOf = ({ run }: CallState, stage: string): EndedRun => {
  if (run !== undefined) return run;
  throw new MillraceError(
    'invalidState',
    `The pipeline needs 'runLoop', or a stage that does the same, before '${stage}'.`,
  );
};

/** The reply as interceptors have left it. */
export const replyOf = ({ reply }: CallState, stage: string): Reply => {
  if (reply !== undefined) return reply;
  throw new MillraceError(
    'invalidState',
    `The pipeline needs 'reviewReply', or a stage that does the same, before '${stage}'.`,
  );
};
