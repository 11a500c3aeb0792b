import { concatMap, map } from 'rxjs';
import { MillraceError } from '../errors.js';
import { reviewed$ } from '../reviewed.js';
import { endReasons, type Reply } from '../reply.js';
import type { EndedRun } from '../run.js';
import type { StepForm } from '../journal/step.js';
import { isRecord } from '../json.js';
import {
  hasFields,
  isArrayOf,
  isAssistantMessage,
  isNumeric,
  isOptional,
  isString,
  isUsage,
} from '../shape.js';
import type { CallStage } from './call-stage.js';
import type { CallState } from './call-state.js';

/** Makes the reply of the run, on which the interceptors of `postCall` have the last word. */
export const reviewReply: CallStage = (context) =>
  concatMap((state) =>
    context
      .step$('reply', () => reviewed$(context, state, runOf(state, 'reviewReply')), replyForm)
      .pipe(map((reply) => ({ ...state, reply }))),
  );

/** What an `output` was made into is told as JSON holds it, where the reply comes from the journal. */
export const replyForm: StepForm<Reply> = {
  isWritten: (written) =>
    isAssistantMessage(written) &&
    hasFields(written, {
      reason: (reason) => endReasons.some((known) => known === reason),
      finish: isString,
      iterations: isNumeric,
      toolUses: isArrayOf(isRecord),
      suspensions: isOptional(isArrayOf(isRecord)),
      usage: isUsage,
      usageByPhase: isRecord,
      createdAt: isNumeric,
      elapsedMs: isNumeric,
    }),
};

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
