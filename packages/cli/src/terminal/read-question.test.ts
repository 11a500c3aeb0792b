import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, VirtualTimeScheduler } from 'rxjs';
import { fakeInput } from './fake-terminal.test-support.js';
import { readQuestion$ } from './read-question.js';

describe('readQuestion$', () => {
  it('reads until the input ends', async () => {
    const input = new PassThrough();
    const question = firstValueFrom(readQuestion$(input));
    input.write('  What is\n');
    input.end(Buffer.from('2 + 2 in €?\n'));
    expect(await question).toBe('What is\n2 + 2 in €?');
  });

  it('finds nothing in an empty input', async () => {
    const scheduler = new VirtualTimeScheduler();
    expect(await firstValueFrom(readQuestion$(fakeInput(), { scheduler }))).toBe('');
  });

  it('waits for a pipe that delivers late, and reports it once, after a second', async () => {
    const input = new PassThrough();
    const scheduler = new VirtualTimeScheduler();
    const silences: number[] = [];
    const onSilence = (): number => silences.push(scheduler.now());
    const question = firstValueFrom(readQuestion$(input, { onSilence, scheduler }));
    scheduler.flush();
    input.end('What is it?');
    expect([await question, silences]).toEqual(['What is it?', [1_000]]);
  });

  it('prints nothing if a question has begun, and waits for all of it', async () => {
    const input = new PassThrough();
    const scheduler = new VirtualTimeScheduler();
    const silences: number[] = [];
    const onSilence = (): number => silences.push(scheduler.now());
    const question = firstValueFrom(readQuestion$(input, { onSilence, scheduler }));
    input.emit('data', 'What');
    scheduler.flush();
    input.end(' is it?');
    expect([await question, silences]).toEqual(['What is it?', []]);
  });

  it('lets the input and the clock go when it is left', () => {
    const input = new PassThrough();
    const scheduler = new VirtualTimeScheduler();
    const silences: number[] = [];
    const onSilence = (): number => silences.push(scheduler.now());
    readQuestion$(input, { onSilence, scheduler }).subscribe().unsubscribe();
    scheduler.flush();
    expect(['data', 'end', 'error'].map((name) => input.listenerCount(name))).toEqual([0, 0, 0]);
    expect(silences).toEqual([]);
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
