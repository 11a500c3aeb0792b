import { randomUUID } from 'node:crypto';

/** Makes an id for a call that is known before it begins. */
export const newCallId = (): string => randomUUID().replaceAll('-', '').slice(0, 16);
