import type { CallInfo } from '../call-info.js';
import type { MemoryEntry } from './long-term-memory.js';

/** What calls have been shown of a memory before their loops, so that it is not shown again. */
export interface ShownMemories {
  of(call: CallInfo): readonly MemoryEntry[];
  add(call: CallInfo, memories: readonly MemoryEntry[]): void;
}

/** Remembers what each call has been shown, for as long as the call lasts. */
export const createShownMemories = (): ShownMemories => {
  const shown = new WeakMap<CallInfo, readonly MemoryEntry[]>();
  const of = (call: CallInfo): readonly MemoryEntry[] => shown.get(call) ?? [];
  return { of, add: (call, memories) => void shown.set(call, [...of(call), ...memories]) };
};
