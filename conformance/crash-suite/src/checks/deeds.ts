import type { Said } from '../life/said.js';

/** What a call has asked or run after it was written down that somebody has interrupted it, in this process and in those that came later: nothing, where all is well. */
export const deedsAfterInterrupt = (said: readonly Said[], callId: string): readonly string[] => {
  const deeds = said.flatMap((it) => (it.type === 'deed' && it.callId === callId ? [it.deed] : []));
  const at = deeds.indexOf('isInterrupted');
  return at === -1 ? [] : deeds.slice(at + 1).filter((deed) => deed !== 'isInterrupted');
};
