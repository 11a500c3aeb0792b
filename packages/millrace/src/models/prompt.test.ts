import { describe, expect, it } from '@jest/globals';
import type { Message } from '../values/message.js';
import { assembleMessages, contextMessages, systemPrompt } from './prompt.js';

const said = (id: string, role: 'user' | 'assistant' = 'user'): Message => ({
  id,
  role,
  content: [{ type: 'text', text: id }],
});
const isInput =
  () =>
  ({ id }: Message): boolean =>
    id.startsWith('c/input/');

describe('the system prompt', () => {
  it('R2: is the instructions, then what was found', () => {
    expect(
      systemPrompt({
        instructions: 'Be kind.',
        context: '[1] a.md\n> Mills turn.',
      }),
    ).toMatchInlineSnapshot(`
     "Be kind.

     [Retrieved Context]
     [1] a.md
     > Mills turn."
    `);
    expect(systemPrompt({ instructions: 'Be kind.', context: '' })).toBe('Be kind.');
    expect(systemPrompt({ instructions: '', context: '' })).toBeUndefined();
  });
});

describe('the messages of a request', () => {
  const history = [said('h1'), said('h2', 'assistant')];
  const asked = [said('c/input/0'), said('c/1', 'assistant'), said('c/input/2')];

  it('R1: are what is recalled, the history, what was found, what was asked, and all after it', () => {
    const injected = { recalled: [said('r')], context: contextMessages('c/context', 'Mills.') };
    expect(assembleMessages([...history, ...asked], injected, isInput).map(({ id }) => id)).toEqual(
      ['r', 'h1', 'h2', 'c/context', 'c/input/0', 'c/1', 'c/input/2'],
    );
    expect(contextMessages('c/context', 'Mills.')[0]?.content).toEqual([
      { type: 'text', text: '[Retrieved Context]\nMills.' },
    ]);
    expect(assembleMessages(history, injected, isInput).map(({ id }) => id)).toEqual([
      'r',
      'h1',
      'h2',
      'c/context',
    ]);
  });

  it('R1: are the same list, if nothing is to be shown beside them', () => {
    const messages = [...history, ...asked];
    expect(assembleMessages(messages, { recalled: [], context: [] }, isInput)).toBe(messages);
  });
});
