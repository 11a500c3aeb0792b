import { expect, it } from '@jest/globals';
import { VirtualTimeScheduler } from 'rxjs';
import { createWaitingRoom, type Waiting } from './waiting-room.js';

const scheduler = new VirtualTimeScheduler();
const until = (expiresAt: number): Waiting => ({ shown: expiresAt, expiresAt, scheduler });

it('T12: remembers so many endings, the newest, and none that are long over', () => {
  const room = createWaitingRoom<Waiting>(2);
  const endings = () => ['a', 'b', 'c', 'd'].map((id) => room.endingOf(id)?.[0] ?? '-').join('');
  for (const id of ['a', 'b', 'c', 'd']) room.enter(id, until(10));
  expect(room.leave('a', 'decided')).toBe(true);
  expect(room.leave('b', 'withdrawn')).toBe(true);
  expect(endings()).toBe('dw--');
  expect(room.leave('c', 'expired')).toBe(true);
  expect(endings()).toBe('-we-');
  scheduler.frame = 10;
  expect(room.leave('d', 'decided')).toBe(true);
  expect(endings()).toBe('---d');
  expect(room.leave('d', 'decided')).toBe(false);
  expect(room.find('d')).toBeUndefined();
});
