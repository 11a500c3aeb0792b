/** The time in milliseconds, with fractions, by a clock that all processes of a machine share. */
export const now = (): number => performance.timeOrigin + performance.now();
