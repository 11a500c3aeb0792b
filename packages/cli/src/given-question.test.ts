import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, VirtualTimeScheduler } from 'rxjs';
import type { Environment } from './environment.js';
import { givenQuestion$ } from './given-question.js';
import { fakeInput, fakeOutput } from './terminal/fake-terminal.test-support.js';

const terminal = (text: string): Environment['stdin'] =>
  Object.assign(fakeInput(text), { isTTY: true });

const given = (question: string, stdin: Environment['stdin'], json = false) => {
  const { stream: stderr, text: said } = fakeOutput();
  const scheduler = new VirtualTimeScheduler();
  const found = firstValueFrom(givenQuestion$({ question, json }, { stdin, stderr, scheduler }));
  return { found, scheduler, said };
};

describe('givenQuestion$', () => {
  it.each([
    ['the arguments', 'Hi', fakeInput('ignored'), { type: 'question', text: 'Hi' }],
    ['a pipe', '', fakeInput('Hi\n'), { type: 'question', text: 'Hi' }],
    ['a pipe, by -', '-', fakeInput('Hi\n'), { type: 'question', text: 'Hi' }],
    ['a terminal, by -', '-', terminal('Hi\n'), { type: 'question', text: 'Hi' }],
    ['an empty input', '', fakeInput(' \n'), { type: 'none' }],
    ['a terminal', '', terminal('ignored'), { type: 'none' }],
  ])('asks %s', async (_where, question, stdin, expected) => {
    const { found, said } = given(question, stdin);
    expect([await found, said()]).toEqual([expected, '']);
  });

  it('waits for a slow pipe, and reports it', async () => {
    const stdin = new PassThrough();
    const { found, scheduler, said } = given('', stdin);
    scheduler.flush();
    stdin.end('Hi');
    expect(await found).toEqual({ type: 'question', text: 'Hi' });
    expect(said()).toBe('Waiting for a question on standard input.\n');
  });

  it('does not interrupt what someone types', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const { found, scheduler, said } = given('-', stdin);
    scheduler.flush();
    stdin.end('Hi');
    expect([await found, said()]).toEqual([{ type: 'question', text: 'Hi' }, '']);
  });

  it.each([
    ['an empty input by -', '-', fakeInput(), false, /^standard input was empty: pipe/],
    ['--json in a terminal', '', terminal(''), true, /^--json does not chat: pass a question/],
  ])('says what is missing with %s', async (_case, question, stdin, json, why) => {
    const { found } = given(question, stdin, json);
    expect(await found).toEqual({ type: 'missing', why: expect.stringMatching(why) });
  });
});
