import type { Writable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { type AgentEvent, createAgent } from 'millrace';
import { draining } from 'millrace/journal';
import { marbles, scriptedModel, text } from 'millrace/testing';
import { concat, finalize, NEVER, of, Subject } from 'rxjs';
import { answerOnly } from './presentation/presenter.js';
import { ask$ } from './ask.js';
import { fakeOutput } from './terminal/fake-terminal.test-support.js';
import { watchOutput } from './terminal/output.js';
import { present } from './presentation/present.js';

/** Asks an agent that begins an answer and never ends it. */
const asked = (stream: Writable) => {
  const interrupt$ = new Subject<void>();
  const terminate$ = new Subject<void>();
  const heard: unknown[] = [];
  const requests = { left: 0 };
  const answer$ = concat(of(text('Half an ')), NEVER).pipe(finalize(() => (requests.left += 1)));
  const calm = draining();
  const agent = createAgent({ model: scriptedModel(answer$), use: [calm] });
  const options = {
    output: watchOutput(stream),
    interrupt$,
    terminate$,
    drain$: () => calm.drain$(),
  };
  ask$((given) => agent.stream$('?', given), present(), options).subscribe({
    next: (outcome) => heard.push(outcome),
    error: (error: unknown) => heard.push(error),
  });
  return { interrupt$, terminate$, heard, requests };
};

describe('ask$', () => {
  it('keeps the partial answer when it is interrupted once, and lets the signal go', () => {
    const { stream, text: written } = fakeOutput();
    const { interrupt$, heard, requests } = asked(stream);
    expect([interrupt$.observed, written()]).toEqual([true, '\nHalf an ']);
    interrupt$.next();
    expect([heard, requests.left, interrupt$.observed]).toEqual([['interrupted'], 1, false]);
    expect(written()).toMatch(/^\nHalf an \n\ninterrupted after \d+ ms .*\n\nreasoning .*!/);
  });

  it('stops immediately when it is interrupted twice, no matter what still waits', () => {
    const { stream, text: written } = fakeOutput();
    stream.write = () => false;
    const { interrupt$, heard, requests } = asked(stream);
    interrupt$.next();
    expect([heard, interrupt$.observed]).toEqual([[], true]);
    interrupt$.next();
    expect([heard, requests.left, interrupt$.observed]).toEqual([['stopped'], 1, false]);
    expect([written(), stream.listenerCount('drain')]).toEqual(['', 0]);
  });

  it('S8: brings the call to rest at a signal, and ends it immediately at the second', () => {
    const { stream } = fakeOutput();
    const { terminate$, heard, requests } = asked(stream);
    terminate$.next();
    expect([heard, requests.left, terminate$.observed]).toEqual([[], 0, true]);
    terminate$.next();
    expect([heard, requests.left, terminate$.observed]).toEqual([['terminated'], 1, false]);
  });

  it('S8: ends it immediately at a Ctrl-C after a signal too, and not politely', () => {
    const { stream, text: written } = fakeOutput();
    const { interrupt$, terminate$, heard, requests } = asked(stream);
    terminate$.next();
    interrupt$.next();
    expect([heard, requests.left, interrupt$.observed]).toEqual([['terminated'], 1, false]);
    expect(written()).toBe('\nHalf an ');
  });

  it('S8: brings a call to rest that was interrupted before', () => {
    const { stream } = fakeOutput();
    stream.write = () => false;
    const { interrupt$, terminate$, heard } = asked(stream);
    interrupt$.next();
    terminate$.next();
    expect([heard, terminate$.observed]).toEqual([['terminated'], false]);
  });

  it('S8: is at rest when the call is, however that ends', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const event$ = cold<AgentEvent>('------#', undefined, new Error('drained'));
      const terminate$ = hot('  --t------');
      const drained$ = cold('     -----(d|)');
      const outcome$ = ask$(() => event$, answerOnly, {
        output: watchOutput(fakeOutput().stream),
        interrupt$: NEVER,
        terminate$,
        drain$: () => drained$,
      });
      expectObservable(outcome$).toBe('-------(t|)', { t: 'terminated' });
      expectSubscriptions(event$.subscriptions).toBe('^-----!');
      expectSubscriptions(drained$.subscriptions).toBe('--^----!');
    });
  });

  it('ends the call when the output breaks', () => {
    const { stream } = fakeOutput();
    const { interrupt$, heard, requests } = asked(stream);
    const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    stream.emit('error', broken);
    expect([heard, requests.left, interrupt$.observed]).toEqual([[broken], 1, false]);
  });
});
