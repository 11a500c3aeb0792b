import {
  type AgentOptions,
  type Model,
  type ModelChunk,
  type ModelRequest,
  textOf,
} from '../../index.js';
import { text } from '../../testing/index.js';
import type { Process } from './process.test-support.js';

/** A model that says what it says in its turns, told by what it has said before, and that it has thought where it is asked beside the loop. */
export const script = (
  { model }: Pick<Process, 'model'>,
  ...turns: readonly (readonly ModelChunk[])[]
): Model =>
  model((request) =>
    isBeside(request) ? [text('Thought.')] : (turns[said(request)] ?? [text('Over.')]),
  );

const isBeside = ({ messages }: ModelRequest): boolean =>
  messages.at(-1)?.id.endsWith('/instruction') === true;

/** How many messages the model has said of those that it is shown. */
export const said = ({ messages }: ModelRequest): number =>
  messages.filter(({ role }) => role === 'assistant').length;

export const lastText = ({ messages }: ModelRequest): string =>
  textOf(messages.at(-1) ?? { content: [] });

/** What an agent of a call has that is cut. What had begun runs again. */
export const options = (
  { durable }: Process,
  limited: Pick<AgentOptions, 'limits'> = {},
): Pick<AgentOptions, 'use' | 'limits'> => ({ use: [durable], ...limited });
