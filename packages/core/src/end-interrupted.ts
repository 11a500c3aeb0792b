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
  return message === undefined && partial !== undefined && textOf(partial) !== ''
    ? end(run, 'interrupted', wordsOf(partial))
    : end(run, 'interrupted', says(call, 'interrupted', message ?? 'Interrupted.'));
};

/** Ends a run that an interceptor would not let go on. */
export const endStopped = (run: OpenRun, { call }: Pick<Context, 'call'>): EndedRun =>
  end(run, 'stopped', stoppedMessage(call));

export const stoppedMessage = (call: Context['call']): AssistantMessage =>
  says(call, 'stopped', 'Stopped.');

/** A message without its thinking and tool calls. */
export const wordsOf = (message: AssistantMessage): AssistantMessage => ({
  ...message,
  content: [textBlock(textOf(message))],
});

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
