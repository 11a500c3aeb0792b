import type { Memory } from 'millrace';

/** The memory of a session in a store: a tree. */
export type StoredMemory = Required<Memory>;

/** Returns the memory of a session in a store. */
export type StoredMemoryFactory = (sessionId: string) => StoredMemory;
