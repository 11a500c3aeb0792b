import type { AssistantMessage } from './message.js';
import type { Context } from './context.js';
import { end, type EndedRun, type OpenRun } from './run.js';
import { says } from './say.js';

/** Ends a run that an interceptor would not let go on. */
export const endStopped = (run: OpenRun, { call }: Pick<Context, 'call'>): EndedRun =>
  end(run, 'stopped', stoppedMessage(call));

/** What a stopped call says. */
export const stoppedMessage = (call: Context['call']): AssistantMessage =>
  says(call, 'stopped', 'Stopped.');
