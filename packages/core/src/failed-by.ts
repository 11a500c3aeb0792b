import type { Context } from './context.js';
import { isMillraceError, messageOf } from './errors.js';
import type { OpenRun } from './run.js';
import { failedOutput, type ToolOutput } from './tool-output.js';

/** What a model is told of an error of a tool. What a program has not set up is no matter of the model's. */
export const failedBy = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  name: string,
  error: unknown,
): ToolOutput => {
  if (!isMillraceError(error) || error.code !== 'config') {
    return failedOutput(`Failed: ${messageOf(error)}`);
  }
  hooks.report(iteration, { type: 'handlerError', of: 'tool', name, error });
  return failedOutput('Failed: the tool is not set up. Go on without it.');
};
