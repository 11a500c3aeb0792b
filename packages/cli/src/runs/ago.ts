/** Units, in milliseconds. */
const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** Formats an age: `3 min ago`. */
export const ago = (ms: number): string => {
  const [name, size] = units.find(([, unit]) => ms >= unit) ?? [];
  return name === undefined ? 'now' : `${Math.floor(ms / size)} ${name} ago`;
};
