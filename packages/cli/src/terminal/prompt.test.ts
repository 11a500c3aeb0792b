import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { fakeOutput } from './fake-terminal.test-support.js';
import { createPrompt } from './prompt.js';

const enter = '\r';
const controlC = '\u0003';
const controlD = '\u0004';
const up = '\u001b[A';

/** A prompt in a terminal. */
const prompted = () => {
  const input = new PassThrough();
  const output = fakeOutput();
  Object.assign(output.stream, { isTTY: true, columns: 80 });
  return { input, output, prompt: createPrompt({ input, output: output.stream, text: '> ' }) };
};

describe('createPrompt', () => {
  it('asks for a line, and lets the input go between two', async () => {
    const { input, output, prompt } = prompted();
    const first = prompt();
    expect(output.text()).toContain('> ');
    input.write(`hello${enter}`);
    expect(await first).toEqual({ type: 'line', line: 'hello' });
    expect(input.listenerCount('keypress')).toBe(0);
    const second = prompt();
    input.write(`again${enter}`);
    expect(await second).toEqual({ type: 'line', line: 'again' });
  });

  it('remembers what was entered before', async () => {
    const { input, prompt } = prompted();
    const first = prompt();
    input.write(`hello${enter}`);
    await first;
    const second = prompt();
    input.write(`${up}!${enter}`);
    expect(await second).toEqual({ type: 'line', line: 'hello!' });
  });

  it('gives pasted lines one after the other', async () => {
    const { input, prompt } = prompted();
    const first = prompt();
    input.write(`one${enter}two${enter}`);
    expect([await first, await prompt()]).toEqual([
      { type: 'line', line: 'one' },
      { type: 'line', line: 'two' },
    ]);
  });

  it.each([
    ['end', controlD],
    ['interrupt', controlC],
  ])('reports an %s', async (type, key) => {
    const { input, prompt } = prompted();
    const entered = prompt();
    input.write(key);
    expect(await entered).toEqual({ type });
  });
});
