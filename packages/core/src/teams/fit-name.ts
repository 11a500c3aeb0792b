export const fitName = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^\w.-]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 64) || 'agent';

/** Names that tools may have, one for each text, and no two of them the same or among those that are taken. */
export const fitNames = (
  texts: readonly string[],
  taken: readonly string[] = [],
): readonly string[] =>
  texts
    .reduce<readonly string[]>((names, text) => [...names, free(fitName(text), names)], taken)
    .slice(taken.length);

const free = (name: string, taken: readonly string[], nth = 1): string => {
  const suffix = nth === 1 ? '' : `_${nth}`;
  const numbered = name.slice(0, 64 - suffix.length) + suffix;
  return taken.includes(numbered) ? free(name, taken, nth + 1) : numbered;
};

export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
