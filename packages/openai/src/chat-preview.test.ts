import { describe, expect, it } from '@jest/globals';
import { createToolParts, type ModelChunk } from 'millrace';
import { parsedJson } from 'millrace/values';
import fc from 'fast-check';
import { chatReader } from './chat-chunks.js';

/** Events that say nothing of the content: they may come more than once, and anywhere. */
const redundant = {
  role: { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] },
  finish: { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
  usage: { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } },
  nothing: { choices: [] },
} as const;

const delta = (fields: object) => ({ choices: [{ index: 0, delta: fields, finish_reason: null }] });

/** What the chunks say: the last finish and usage count, as in `exchange$` and the message. */
const messageOf = (chunks: readonly ModelChunk[]) => {
  const parts = createToolParts(0, () => false);
  const calls = new Map<string, ReturnType<typeof parts.add>['part']>();
  let text = '';
  for (const chunk of chunks) {
    if (chunk.type === 'text') text += chunk.text;
    if (chunk.type !== 'toolCall') continue;
    const { part } = parts.add(chunk, 1);
    calls.set(part.id, part);
  }
  return {
    text,
    calls: [...calls.values()].map(({ id, name, json }) => ({
      id,
      name,
      input: parsedJson(json.join('')),
    })),
    finish: chunks.findLast(({ type }) => type === 'finish'),
    usage: chunks.findLast(({ type }) => type === 'usage'),
  };
};

const read = (events: readonly unknown[]) => {
  const reader = chatReader({ vendor: 'Mine', server: 'Mine', toolName: (name) => name });
  return messageOf(events.flatMap((data) => reader.read({ data })));
};

const word = fc.string({ unit: 'binary', maxLength: 12 });

const cut = (text: string, size: number): readonly string[] =>
  text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [''];

describe('X5: a chat completion', () => {
  it('is the same message with any cut, and with redundant events anywhere', () => {
    const extra = fc.record({
      place: fc.nat(60),
      what: fc.constantFrom(...Object.values(redundant)),
    });
    const property = fc.property(
      word,
      fc.array(word, { maxLength: 3 }),
      fc.integer({ min: 1, max: 8 }),
      fc.array(extra, { maxLength: 6 }),
      (text, cities, size, extras) => {
        const calls = cities.map((city, index) => ({
          index,
          id: `c${index}`,
          json: JSON.stringify({ city }),
        }));
        const content = [
          ...cut(text, size).map((piece) => delta({ content: piece })),
          ...calls.flatMap(({ index, id, json }) => [
            delta({ tool_calls: [{ index, id, function: { name: 'weather', arguments: '' } }] }),
            ...cut(json, size).map((piece) =>
              delta({ tool_calls: [{ index, function: { arguments: piece } }] }),
            ),
          ]),
        ];
        const events: unknown[] = [...content];
        for (const { place, what } of extras) events.splice(place % (events.length + 1), 0, what);
        expect(read([...events, redundant.finish, redundant.usage])).toEqual({
          text,
          calls: cities.map((city, index) => ({
            id: `c${index}`,
            name: 'weather',
            input: { city },
          })),
          finish: { type: 'finish', finish: 'stop' },
          usage: { type: 'usage', usage: { inputTokens: 3, outputTokens: 2 } },
        });
      },
    );
    fc.assert(property, { numRuns: 200 });
  });
});
