import { type AgentEvent, isMillraceError, type MillraceError, textOf } from 'millrace';
import type { CallSummary } from 'millrace/journal';
import { withoutSecrets } from 'millrace/values';
import { describeError } from '../presentation/describe-error.js';
import { printable, printableName } from '../presentation/printable.js';
import type { Theme } from '../presentation/theme.js';
import { wrapFor } from '../presentation/wrap.js';
import { statusOf } from './describe-status.js';
import { isOwn, resumeElsewhere } from './find-run.js';
import { commandFor, hint } from './hints.js';
import type { StoreArguments } from '../command-line/arguments.js';

/** The error that ended a run, by its last event; undefined for another end, and for an abort, which can be resumed. */
export const failureOf = (last: AgentEvent | undefined): MillraceError | undefined =>
  last?.type === 'error' &&
  last.callId === last.rootId &&
  isMillraceError(last.error) &&
  last.error.code !== 'aborted'
    ? last.error
    : undefined;

/** Why a run failed: the whole message, the code, the message for users, and how to continue. Ends with a line break. */
export const describeFailure = (
  error: MillraceError,
  run: CallSummary,
  given: StoreArguments,
  theme: Theme,
): string => {
  const { dim } = theme.colors;
  const why = describeError(error, theme);
  const forUsers = wrapFor(dim(`  Users see: ${printable(error.userMessage)}`), theme);
  // Some errors begin with the message for users.
  const more = printable(why).includes(printable(error.userMessage)) ? [] : [forUsers];
  return [why, ...more, dim(resumeNote(run, given, theme))].map((line) => `${line}\n`).join('');
};

/** How to resume a run that failed or is unfinished. */
export const resumeNote = (run: CallSummary, given: StoreArguments, theme: Theme): string => {
  if (!isOwn(run)) return wrapFor(printableName(resumeElsewhere(run)), theme);
  const start = statusOf(run) === 'unfinished' ? 'It is unfinished. Resume it:' : 'Resume it:';
  return hint(start, commandFor('resume', run.callId, given), theme);
};

/** A tool call that failed, for `--json`. */
export interface ToolError {
  readonly name: string;
  readonly toolCallId: string;
  /** The text that the model got, without keys. */
  readonly message: string;
}

/** The tool calls of a run that failed, those of its sub-agents included. */
export const toolErrorsIn = (events: readonly AgentEvent[]): readonly ToolError[] =>
  events.flatMap((event) =>
    event.type === 'postActing' && event.result.isError
      ? [
          {
            name: event.toolCall.name,
            toolCallId: event.toolCall.id,
            message: withoutSecrets(textOf(event.result)),
          },
        ]
      : [],
  );
