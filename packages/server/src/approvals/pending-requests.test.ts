import { expect, it } from '@jest/globals';
import { VirtualTimeScheduler } from 'rxjs';
import { createPendingRequests, type PendingRequest } from './pending-requests.js';

const scheduler = new VirtualTimeScheduler();
const until = (expiresAt: number): PendingRequest => ({ shown: expiresAt, expiresAt, scheduler });

it('T12: remembers a limited number of the newest outcomes, and no expired ones', () => {
  const room = createPendingRequests<PendingRequest>(2);
  const endings = () => ['a', 'b', 'c', 'd'].map((id) => room.outcomeOf(id)?.[0] ?? '-').join('');
  for (const id of ['a', 'b', 'c', 'd']) room.add(id, until(10));
  expect(room.settle('a', 'decided')).toBe(true);
  expect(room.settle('b', 'withdrawn')).toBe(true);
  expect(endings()).toBe('dw--');
  expect(room.settle('c', 'expired')).toBe(true);
  expect(endings()).toBe('-we-');
  scheduler.frame = 10;
  expect(room.settle('d', 'decided')).toBe(true);
  expect(endings()).toBe('---d');
  expect(room.settle('d', 'decided')).toBe(false);
  expect(room.find('d')).toBeUndefined();
});
