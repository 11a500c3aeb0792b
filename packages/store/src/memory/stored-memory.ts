import type { Memory } from 'millrace';

/** The memory of a session in a store: a tree. */
export type StoredMemory = Required<Memory>;

export type StoredMemoryFactory = (sessionId: string) => StoredMemory;
