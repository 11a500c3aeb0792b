import { Writable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { createDemand } from 'millrace';
import { Subject } from 'rxjs';
import { writeTo } from './write-to.js';

/** An output that is full after each text, until it is drained by hand. */
const fullOutput = () => {
  const written: string[] = [];
  const output = new Writable();
  const write = (text: string): boolean => {
    written.push(text);
    return false;
  };
  Object.assign(output, { write });
  return { output, written, drain: () => output.emit('drain') };
};

const listen = (output: Writable) => {
  const demand = createDemand(2);
  const text$ = new Subject<string>();
  const ends: string[] = [];
  const subscription = text$.pipe(writeTo(output, demand)).subscribe({
    error: (error: unknown) => ends.push(String(error)),
    complete: () => ends.push('complete'),
  });
  return { demand, text$, ends, subscription };
};

describe('writeTo', () => {
  it('writes the next text once the output can take it, and closes the demand meanwhile', () => {
    const { output, written, drain } = fullOutput();
    const { demand, text$, ends } = listen(output);
    text$.next('a');
    text$.next('b');
    text$.complete();
    expect([written, demand.isOpen, ends]).toEqual([['a'], false, []]);
    drain();
    expect([written, demand.isOpen, ends]).toEqual([['a', 'b'], true, []]);
    drain();
    expect([written, ends]).toEqual([['a', 'b'], ['complete']]);
  });

  it('makes an error wait for what was to be written', () => {
    const { output, written, drain } = fullOutput();
    const { text$, ends } = listen(output);
    text$.next('a');
    text$.next('b');
    text$.error(new Error('broken'));
    expect(ends).toEqual([]);
    drain();
    drain();
    expect([written, ends]).toEqual([['a', 'b'], ['Error: broken']]);
  });

  it('releases the demand and the output when it is left', () => {
    const { output } = fullOutput();
    const { demand, text$, subscription } = listen(output);
    text$.next('a');
    text$.next('b');
    subscription.unsubscribe();
    expect([demand.isOpen, output.listenerCount('drain')]).toEqual([true, 0]);
  });
});
