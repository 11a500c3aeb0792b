import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, VirtualTimeScheduler } from 'rxjs';
import { fakeInput } from './fake-terminal.test-support.js';
import { type PipedQuestion, readQuestion$ } from './read-question.js';

describe('readQuestion$', () => {
  it('reads until the input ends', async () => {
    const input = new PassThrough();
    const question = firstValueFrom(readQuestion$(input));
    input.write('  What is\n');
    input.end(Buffer.from('2 + 2 in €?\n'));
    expect(await question).toEqual({ text: 'What is\n2 + 2 in €?', silent: false });
  });

  it('finds nothing in an empty input', async () => {
    const scheduler = new VirtualTimeScheduler();
    const question$ = readQuestion$(fakeInput(), { patience: 500, scheduler });
    expect(await firstValueFrom(question$)).toEqual({ text: '', silent: false });
  });

  it('does not wait for ever at a pipe that nobody writes to', () => {
    const input = new PassThrough();
    const scheduler = new VirtualTimeScheduler();
    const questions: (PipedQuestion & { at: number })[] = [];
    readQuestion$(input, { patience: 500, scheduler }).subscribe((question) =>
      questions.push({ ...question, at: scheduler.now() }),
    );
    scheduler.flush();
    expect(questions).toEqual([{ text: '', silent: true, at: 500 }]);
    expect(['data', 'end', 'error'].map((name) => input.listenerCount(name))).toEqual([0, 0, 0]);
  });

  it('waits for all of a question that has begun', async () => {
    const input = new PassThrough();
    const scheduler = new VirtualTimeScheduler();
    const question = firstValueFrom(readQuestion$(input, { patience: 500, scheduler }));
    input.emit('data', 'What');
    scheduler.flush();
    input.end(' is it?');
    expect(await question).toEqual({ text: 'What is it?', silent: false });
  });

  it('refuses a question without measure', async () => {
    const question = firstValueFrom(readQuestion$(fakeInput('x'.repeat(100_001))));
    await expect(question).rejects.toMatchObject({ code: 'tooLarge' });
  });

  it('passes on that the input broke', async () => {
    const input = new PassThrough();
    const question = firstValueFrom(readQuestion$(input));
    input.destroy(new Error('no such device'));
    await expect(question).rejects.toThrow('no such device');
  });
});
