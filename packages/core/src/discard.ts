import type { Context } from './context.js';
import type { AssistantMessage } from './message.js';
import { hasEnded, type Run } from './run.js';

/** Says that a message which subscribers may have seen is void. */
export const discard = (
  { hooks }: Pick<Context, 'hooks'>,
  iteration: number,
  { id: messageId, content }: AssistantMessage,
  why: string,
  isShown = content.length > 0,
): void => {
  if (isShown) hooks.report(iteration, { type: 'messageDiscarded', messageId, why });
};

/** Says it of a message that the run has ended without. */
export const discardUnlessKept = <AnyRun extends Run>(
  context: Pick<Context, 'hooks'>,
  run: AnyRun,
  message: AssistantMessage,
): AnyRun => {
  if (hasEnded(run) && run.answer.id !== message.id) {
    discard(context, run.iteration, message, run.status);
  }
  return run;
};
