import { type AssistantBlock, type AssistantMessage, textBlock, textOf } from './message.js';
import type { Context } from './context.js';
import { end, type EndedRun, type OpenRun } from './run.js';
import type { CallInfo } from './call-info.js';

/** Ends an interrupted run: with the interrupt's message, else with the text that was there, else with a word. */
export const endInterrupted = (
  run: OpenRun,
  { call, interruption }: Pick<Context, 'call' | 'interruption'>,
  partial?: AssistantMessage,
  instead?: string,
): EndedRun => {
  const message = interruption.current?.message ?? instead;
  const text = partial === undefined ? '' : textOf(partial);
  return message === undefined && partial !== undefined && text !== ''
    ? end(run, 'interrupted', { ...partial, content: [textBlock(text)] })
    : end(run, 'interrupted', says(call, 'interrupted', message ?? 'Interrupted.'));
};

/** Ends a run that an interceptor would not let go on. */
export const endStopped = (run: OpenRun, { call }: Pick<Context, 'call'>): EndedRun =>
  end(run, 'stopped', stoppedMessage(call));

/** What a stopped call says. */
export const stoppedMessage = (call: Context['call']): AssistantMessage =>
  says(call, 'stopped', 'Stopped.');

/** Makes a message of the agent's that no model wrote; `position` makes its id. */
export const says = (
  { callId, agent }: Pick<CallInfo, 'callId' | 'agent'>,
  position: string,
  content: string | readonly AssistantBlock[],
): AssistantMessage => ({
  id: `${callId}/${position}`,
  role: 'assistant',
  name: agent.at(-1) ?? '',
  content: typeof content === 'string' ? [textBlock(content)] : content,
});
