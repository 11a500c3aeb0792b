import { defer, finalize, Observable, tap } from 'rxjs';
import { contained } from '../../flow/contained.js';
import type { MillraceError } from '../../values/errors.js';
import { createFifo } from '../../flow/fifo.js';

export interface Guest {
  /** Takes what it needs, and says whether there was enough. Asked when it comes, and again while it is the first who waits. */
  readonly admit: (isFirst: boolean) => boolean;
  /** Gives back what it took. */
  readonly leave: () => void;
  /** Hears that it has to wait, and behind how many others. */
  readonly waits?: ((ahead: number) => void) | undefined;
}

/** Lets work begin, in the order in which it came, as what it needs becomes free. */
interface Gate {
  /** How many wait. */
  readonly waiting: number;
  /** Waits until the guest is admitted, then subscribes to its work. Cold. It is over for the guest before its completion, its error or the end of an unsubscription is heard; one who leaves while it waits has taken nothing. */
  enter$<T>(guest: Guest, work: () => Observable<T>): Observable<T>;
  /** Admits whoever can be admitted by now. */
  look(): void;
}

interface Entry {
  readonly guest: Guest;
  readonly begin: () => void;
  state: 'waiting' | 'admitted' | 'gone';
  leaveLine: () => void;
}

export const createGate = (maxQueue: number, full: () => MillraceError): Gate => {
  const line = createLine<Entry>();
  const admitted = createFifo<Entry>();
  let isBeginning = false;

  const admit = (entry: Entry): void => {
    entry.leaveLine();
    entry.state = 'admitted';
    admitted.push(entry);
  };
  const admitAll = (): void => {
    let { first } = line;
    while (first?.guest.admit(true) === true) {
      admit(first);
      ({ first } = line);
    }
  };
  // One by one, never one inside another: work may be over, or come back for more, while it begins.
  const beginAll = (): void => {
    if (isBeginning) return;
    isBeginning = true;
    try {
      for (let next = admitted.shift(); next !== undefined; next = admitted.shift()) next.begin();
    } finally {
      isBeginning = false;
    }
  };
  const enter = (entry: Entry): boolean => {
    const { guest } = entry;
    if (guest.admit(line.size === 0)) admit(entry);
    else if (line.size < maxQueue) {
      const ahead = line.size;
      entry.leaveLine = line.add(entry);
      guest.waits?.(ahead);
    } else return false;
    return true;
  };
  const leave = (entry: Entry): void => {
    const { state } = entry;
    if (state === 'gone') return;
    entry.state = 'gone';
    if (state === 'waiting') entry.leaveLine();
    else entry.guest.leave();
    admitAll();
  };

  return {
    get waiting() {
      return line.size;
    },
    enter$: (guest, work) =>
      new Observable((subscriber) => {
        let hasBegun = false;
        const over = (): void => leave(entry);
        const begin = (): void => {
          if (subscriber.closed) return;
          hasBegun = true;
          // Who hears of the end finds the place free; who comes next begins when all is torn down.
          const work$ = defer(work).pipe(tap({ error: over, complete: over }), contained());
          work$.pipe(finalize(end)).subscribe(subscriber);
        };
        const end = (): void => {
          over();
          beginAll();
        };
        const entry: Entry = { guest, begin, state: 'waiting', leaveLine: () => undefined };
        if (!enter(entry)) {
          subscriber.error(full());
          return;
        }
        subscriber.add(() => {
          if (!hasBegun) end();
        });
        beginAll();
      }),
    look: () => {
      admitAll();
      beginAll();
    },
  };
};

/** Those who wait, in the order in which they came. Coming, going and leaving cost the same, however many wait. */
interface Line<T> {
  readonly size: number;
  readonly first: T | undefined;
  /** Puts a value last. What it returns takes the value out again, wherever it then stands. */
  add(value: T): () => void;
}

export const createLine = <T>(): Line<T> => {
  let first: Place<T> | undefined;
  let last: Place<T> | undefined;
  let size = 0;
  const remove = (place: Place<T>): void => {
    if (!place.isTaken) return;
    place.isTaken = false;
    size -= 1;
    const { before, behind } = place;
    if (before === undefined) first = behind;
    else before.behind = behind;
    if (behind === undefined) last = before;
    else behind.before = before;
  };
  return {
    get size() {
      return size;
    },
    get first() {
      return first?.value;
    },
    add: (value) => {
      const place: Place<T> = { value, before: last, behind: undefined, isTaken: true };
      if (last === undefined) first = place;
      else last.behind = place;
      last = place;
      size += 1;
      return () => remove(place);
    },
  };
};

interface Place<T> {
  readonly value: T;
  before: Place<T> | undefined;
  behind: Place<T> | undefined;
  isTaken: boolean;
}
