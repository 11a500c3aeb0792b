import { map, merge, type Observable, of, scan, takeWhile, tap } from 'rxjs';
import type { CallOptions } from './call-options.js';
import type { Interrupt } from './interruption.js';
import type { CallSteps } from './call-context.js';
import { seatForm, type SeatRecord, seatStep } from './journal/seat-step.js';
import type { Seat, SeatedCall } from './seats.js';

/** What has become of a call that waits for its place in a session. */
export interface Placed extends SeatRecord {
  /** It waits no longer. */
  readonly isOver: boolean;
}

/** Takes the place of a call in its session, and tells what becomes of it meanwhile. One that goes on has had it before: it waits however long, and is cut only where it went on. */
export const placed$ = (
  seat: Seat,
  call: SeatedCall,
  { onBusy = 'reject', maxQueue = 16 }: Pick<CallOptions, 'onBusy' | 'maxQueue'>,
  goesOn: boolean,
): Observable<Placed> => {
  const { interruption } = call;
  if (goesOn) {
    return seat.take$(call, 'queue', Infinity).pipe(
      tap((seated) => {
        if (seated === 'superseded') interruption.trigger({});
      }),
      map((seated): Placed => ({ as: 'seated', isOver: seated === 'seated' })),
      takeWhile(({ isOver }) => !isOver, true),
    );
  }
  return merge(seat.take$(call, onBusy, maxQueue), interruption.signal$).pipe(
    scan((before: Placed, now): Placed => {
      if (now === 'superseded') return { as: now, isOver: false };
      if (now === 'seated') return { as: before.as, isOver: true };
      return { as: 'interrupted', isOver: true, ...messageOf(now) };
    }, waiting),
    takeWhile(({ isOver }) => !isOver, true),
  );
};

const waiting: Placed = { as: 'seated', isOver: false };

const messageOf = ({ message }: Interrupt): Pick<Placed, 'message'> =>
  message === undefined ? {} : { message };

/** Writes down what became of a call, where it is more than that it got its place: it is the same when the call goes on. */
export const placeWritten$ = (
  placed: Placed,
  { begin, mayBeWritten }: CallSteps,
): Observable<Placed> => {
  const { isOver, ...now } = placed;
  if (now.as === 'seated' && !mayBeWritten(seatStep)) return of(placed);
  return begin({
    kind: 'seat',
    id: seatStep,
    input: undefined,
    run: () => of(now),
    form: seatForm,
  }).pipe(
    // Who has left does not have the place, whatever was written before.
    map((then) => (now.as === 'interrupted' ? placed : { ...then, isOver })),
  );
};
