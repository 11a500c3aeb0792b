import { describe, expect, it } from '@jest/globals';
import { chat } from './chat.js';

describe('chat', () => {
  const chatted = async (...typed: readonly string[]) => {
    const asked: string[] = [];
    const rest = [...typed];
    const ended = await chat({
      prompt: () => {
        const line = rest.shift();
        return Promise.resolve(line === undefined ? { type: 'end' } : { type: 'line', line });
      },
      ask: (question) => {
        asked.push(question);
        return Promise.resolve(question === 'stop' ? 'stopped' : 'failed');
      },
    });
    return [ended, ...asked];
  };

  it.each([
    [
      ['a', ' b '],
      ['ended', 'a', 'b'],
    ],
    [
      ['a', '', 'b'],
      ['ended', 'a'],
    ],
    [
      ['a', 'exit', 'b'],
      ['ended', 'a'],
    ],
    [
      ['stop', 'b'],
      ['stopped', 'stop'],
    ],
  ])('asks %j: %j', async (typed, expected) => {
    expect(await chatted(...typed)).toEqual(expected);
  });
});
