import type { AssistantMessage } from './message.js';
import { textBlock, textOf } from './message.js';
import type { Context } from './context.js';
import { end, type EndedRun, type OpenRun } from './run.js';
import { says } from './say.js';

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
