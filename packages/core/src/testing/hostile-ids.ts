import { ok } from 'node:assert/strict';
import { isMillraceError } from '../errors.js';
import type { CallStoreDriver, StoredRecord } from '../journal/call-store-driver.js';
import { step, write } from './call-records.js';

/** Ids of calls that file systems, databases and objects may misread. */
export const hostileIds = [
  ...['a', 'A', 'á', 'a/b', 'a_b', 'a_2fb', 'a\\b', '..', '.', '../../x', '/etc/x', 'con', 'nul'],
  ...['__proto__', 'constructor', 'a\u0000b', 'a\nb', ' ', '', '%', "a' OR '1'='1", 'c.lock'],
  ...['\ud800', '\udc00', '\ufffd', '🍵', 'x'.repeat(10_000), `${'x'.repeat(9_999)}y`],
];

/** Tells whether a store writes down a call with this id; it may refuse to. */
export const isTaken = async (driver: CallStoreDriver, callId: string): Promise<boolean> => {
  try {
    await write(driver, callId, [step('id', 0, JSON.stringify(callId))]);
    return true;
  } catch (error) {
    asRefused(error);
    return false;
  }
};

/** What is read of a call whose id is refused. */
export const asRefused = (error: unknown): readonly StoredRecord[] => {
  ok(isMillraceError(error) && (error.code === 'config' || error.code === 'tooLarge'));
  return [];
};
