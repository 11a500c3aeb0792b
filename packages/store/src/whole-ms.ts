/** A time as stores keep it: clocks of schedulers may have fractions, or start below zero. */
export const wholeMs = (at: number): number => Math.max(0, Math.floor(at));
