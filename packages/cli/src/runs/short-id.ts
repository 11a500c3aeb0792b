/** Characters of an id that are shown at least. */
export const leastId = 8;

/** The beginning of an id that no other of these has; at least 8 characters. */
export const shortId = (id: string, among: readonly string[] = []): string => {
  const others = among.filter((other) => other !== id);
  const isOwn = (length: number): boolean =>
    !others.some((other) => other.startsWith(id.slice(0, length)));
  let length = leastId;
  while (length < id.length && !isOwn(length)) length += 1;
  return id.slice(0, length);
};
