import { randomUUID } from 'node:crypto';

/** A call id that is known before the call starts. */
export const newCallId = (): string => randomUUID().replaceAll('-', '').slice(0, 16);
