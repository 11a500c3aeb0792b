import type { Memory } from '@millrace/core';

/** The memory of a session in a store. */
export type StoredMemory = Memory & Required<Pick<Memory, 'replace$'>>;

/** Returns the memory of a session in a store. */
export type StoredMemoryFactory = (sessionId: string) => StoredMemory;
