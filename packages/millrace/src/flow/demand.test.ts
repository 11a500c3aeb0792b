import { describe, expect, it } from '@jest/globals';
import { createDemand, joinDemand } from './demand.js';

describe('joinDemand', () => {
  it('I16: is open while all of them are, also those that join later', () => {
    const [near, far, late] = [createDemand(2), createDemand(2), createDemand(2)];
    const all = joinDemand(near, undefined, far);
    const seen: boolean[] = [];
    const listening = all.open$.subscribe((open) => seen.push(open));
    far.backlog(2);
    const leave = all.join(late);
    late.backlog(2);
    far.backlog(0);
    expect(all.isOpen).toBe(false);
    leave();
    expect(all.isOpen).toBe(true);
    expect(seen).toEqual([true, false, true]);
    listening.unsubscribe();
  });

  it('I16: one that has joined twice leaves once', () => {
    const demand = createDemand(2);
    const all = joinDemand(demand);
    all.join(demand)();
    demand.backlog(2);
    expect(all.isOpen).toBe(false);
  });

  it('I16: emits the current level to each observer, also if one joins a demand when it hears it', () => {
    const closed = createDemand(2);
    closed.backlog(2);
    const all = joinDemand();
    const leave = all.join(closed);
    let again = 0;
    const first = all.open$.subscribe((isOpen) => {
      if (isOpen && again++ === 0) all.join(closed);
    });
    const seen: boolean[] = [];
    const second = all.open$.subscribe((isOpen) => seen.push(isOpen));
    leave();
    expect({ isOpen: all.isOpen, seen: seen.at(-1) }).toEqual({ isOpen: false, seen: false });
    first.unsubscribe();
    second.unsubscribe();
  });

  it('is open if nothing closes it', () => {
    expect(joinDemand(undefined).isOpen).toBe(true);
  });
});
