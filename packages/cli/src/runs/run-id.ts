import { randomUUID } from 'node:crypto';

/** A call id that is known before the call starts. */
export const newCallId = (): string => randomUUID().replaceAll('-', '').slice(0, 16);

/** Minimum length of a shown id. */
export const leastId = 8;

/** The shortest prefix of an id that is unique among these ids, with at least 8 characters. */
export const shortId = (id: string, among: readonly string[] = []): string => {
  const others = among.filter((other) => other !== id);
  const isOwn = (length: number): boolean =>
    !others.some((other) => other.startsWith(id.slice(0, length)));
  let length = leastId;
  while (length < id.length && !isOwn(length)) length += 1;
  return id.slice(0, length);
};
